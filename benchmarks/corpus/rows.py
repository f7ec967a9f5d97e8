"""The list: real bugs with their fixes, idioms that are right, and which codes speak of which label."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

KEPT = "kept"
LISTS = {"seen": HERE, "learned": HERE / "mined" / "learned", KEPT: HERE / "mined" / KEPT}
"""Folders of lists. ``seen`` is what amplint was mended on; the mined ones are halved by repository (see ``halves``)
before they were read, and of the kept half only figures may be looked at."""

DECIDABLE_IN_FILE = ("local", "file")
"""Values of ``decidable`` for which the row's own file holds all that is needed: one function, or the whole file."""


class RowsError(Exception):
    """A list cannot be used: no row is left, or a label is unknown."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file of a repository (``OWNER/NAME``) at a commit."""

    repository: str
    commit: str
    path: str


@dataclass(frozen=True, slots=True)
class Case:
    """A bug: the labelled lines (from 1) of the file before its fix.

    ``decidable`` is local, file, cross (another file is needed) or runtime. ``post_clean`` is false where the fix left
    the defect, or a part of it. ``corrected`` says why the row differs from the list as it was first collected.
    """

    id: str
    label: str
    decidable: str
    lines: tuple[int, ...]
    before: Place
    after: Place
    post_clean: bool
    context: str
    fix: str
    corrected: str = ""


@dataclass(frozen=True, slots=True)
class Negative:
    """Lines that look odd and are right.

    ``right``: codes that are justified there nonetheless; ``corrected`` says why.
    """

    id: str
    lines: tuple[int, ...]
    place: Place
    why_ok: str
    right: tuple[str, ...] = ()
    corrected: str = ""


def load_cases(path: Path = HERE / "cases.jsonl") -> list[Case]:
    """The bugs, in the order of the file."""
    return [
        Case(
            id=row["id"],
            label=row["label"],
            decidable=row["decidable"],
            lines=tuple(row["lines"]),
            before=Place(row["repo"], row["pre_sha"], row["path"]),
            after=Place(row["repo"], row["fix_sha"], row["path"]),
            post_clean=row["post_clean"],
            context=row["context"],
            fix=row["fix"],
            corrected=row.get("corrected", ""),
        )
        for row in _rows(path)
    ]


def load_negatives(path: Path = HERE / "negatives.jsonl") -> list[Negative]:
    """The idioms that must not be flagged."""
    return [
        Negative(
            id=row["id"],
            lines=tuple(row["lines"]),
            place=Place(row["repo"], row["sha"], row["path"]),
            why_ok=row["why_ok"],
            right=tuple(row.get("right", ())),
            corrected=row.get("corrected", ""),
        )
        for row in _rows(path)
    ]


def load_labels(path: Path = HERE / "labels.json") -> dict[str, tuple[str, ...]]:
    """The codes that fit each label."""
    return {label: tuple(codes) for label, codes in json.loads(path.read_text(encoding="utf-8")).items()}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
