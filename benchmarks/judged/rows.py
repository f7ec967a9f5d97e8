"""The judgements, as they are kept: JSON objects, one a line, in the order of release and place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

VERDICTS = ("right", "wrong", "arguable")
"""Of a finding. ``arguable``: true as it stands, and a maintainer would shrug."""

SECOND_VERDICTS = {"defect": "right", "harmless": "wrong", "arguable": "arguable"}
"""Of a line, by someone who was told the place and what to look at, and what they say about a finding there."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a release, ``path`` from the folder of the release, ``line`` from 1."""

    package: str
    release: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding at a place, and what its reader says. A crash claim is ``right`` only if a run showed it.

    ``drawn`` is the day on which it was drawn from what amplint reported then.
    """

    drawn: str
    place: Place
    code: str
    severity: str
    certainty: str
    verdict: str
    reason: str


class RowsError(Exception):
    """A file of judgements cannot be read."""


def findings(path: Path) -> list[Judged]:
    """The judged findings. Raises RowsError."""
    try:
        rows = [
            Judged(
                row["drawn"], _place(row), row["code"], row["severity"], row["certainty"], row["verdict"], row["reason"]
            )
            for row in _lines(path)
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RowsError(f"{path} has a row that is no judgement: {error!r}") from error
    for one in rows:
        if one.verdict not in VERDICTS or not one.reason:
            raise RowsError(f"{path}: {one.place.path}:{one.place.line} needs a verdict of {VERDICTS} and a reason")
    return rows


def second_verdicts(path: Path) -> dict[tuple[str, Place, str], str]:
    """What the second reader's verdict means for the finding of a rule at a place, by draw. Raises RowsError."""
    try:
        return {(row["drawn"], _place(row), row["code"]): SECOND_VERDICTS[row["verdict"]] for row in _lines(path)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RowsError(f"{path} has a row that is no judgement: {error!r}") from error


def _lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _place(row: dict[str, str]) -> Place:
    return Place(row["package"], row["release"], row["path"], int(row["line"]))
