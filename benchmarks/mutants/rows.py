"""The labels: a JSON line for each mutant, and one for what an original ran through. Data only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutants.edits import Edit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KIND_TRAINING = "training"
LABELS = Path(__file__).resolve().parent / "labels"


@dataclass(frozen=True)
class Row:
    """One mutant: ``edits`` of ``file``, whose unbroken bytes have the digest ``sha256``; ``target`` is what was run.

    ``labels`` by scenario: ``label``, and where something came of it ``error``, ``family``, ``place``, ``variant`` and
    ``mode`` of the run. ``place`` is a row of the broken file. ``cases`` are the inputs and modes that were run: a slow
    target is not run on all of them.
    """

    library: str
    release: str
    file: str
    sha256: str
    target: str
    kind: str
    operator: str
    edits: tuple[Edit, ...]
    labels: dict[str, dict[str, Any]]
    cases: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What tells a mutant from all others."""
        places = ";".join(f"{e.row}:{e.column}-{e.end_row}:{e.end_column}={e.text}" for e in self.edits)
        return f"{self.library} {self.file} {self.operator} {places}"

    def to_json(self) -> dict[str, Any]:
        edits = [[e.row, e.column, e.end_row, e.end_column, e.text] for e in self.edits]
        given = {name: getattr(self, name) for name in _FIELDS}
        return {**given, "edits": edits, "labels": self.labels, "cases": list(self.cases)}


_FIELDS = ("library", "release", "file", "sha256", "target", "kind", "operator")


@dataclass(frozen=True)
class Original:
    """What of a file ran clean in each scenario, unbroken, as ranges of rows."""

    library: str
    release: str
    file: str
    sha256: str
    clean: dict[str, list[list[int]]]

    def to_json(self) -> dict[str, Any]:
        return {"original": True, **{name: getattr(self, name) for name in (*_FIELDS[:4], "clean")}}


def load(path: Path) -> tuple[list[Row], list[Original]]:
    """The rows of one file of labels."""
    rows, originals = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        if data.pop("original", False):
            originals.append(Original(**data))
        else:
            edits = tuple(Edit(*one) for one in data.pop("edits"))
            rows.append(Row(**{**data, "edits": edits, "cases": tuple(data.get("cases", ()))}))
    return rows, originals


def files_of(half: str, folder: Path = LABELS) -> list[Path]:
    """The files of labels of one half."""
    return sorted((folder / half).glob("*.jsonl"))


def write(path: Path, entries: Iterable[Row | Original]) -> None:
    """Add entries to a file of labels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for entry in entries:
            file.write(json.dumps(entry.to_json(), separators=(",", ":")) + "\n")


def ranges(rows: Iterable[int]) -> Iterator[list[int]]:
    """``[first, last]`` of each unbroken stretch of rows."""
    start = previous = None
    for row in sorted(rows):
        if previous is not None and row == previous + 1:
            previous = row
            continue
        if start is not None and previous is not None:
            yield [start, previous]
        start = previous = row
    if start is not None and previous is not None:
        yield [start, previous]
