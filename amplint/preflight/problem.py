"""What preflight reports."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from pathlib import Path


class Evidence(str, Enum):
    """How a statement is known: seen on this machine or in these files, run by amplint's authors, or cited."""

    SEEN = "seen"
    RUN = "run"
    CITED = "cited"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a file: absolute path, row and column from 1, the column in characters."""

    path: Path
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that will go wrong, where it is written (None for the machine itself), and what to do about it.

    ``id`` is stable: the name of a check, or of the advisory. ``sources`` are addresses.
    """

    id: str
    severity: Severity
    message: str
    place: Place | None
    remedy: str
    sources: tuple[str, ...]
    evidence: Evidence

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Problems of the machine first, then by file, position and id."""
        if self.place is None:
            return ("", 0, 0, self.id, self.message)
        return (str(self.place.path), self.place.row, self.place.column, self.id, self.message)


def cited(name: str, message: str, place: Place, remedy: str, source: str) -> Problem:
    """A warning about a setting, known from one address."""
    return Problem(name, Severity.WARNING, message, place, remedy, (source,), Evidence.CITED)


def of_machine(name: str, message: str, remedy: str, source: str) -> Problem:
    """An error of the machine itself."""
    return Problem(name, Severity.ERROR, message, None, remedy, (source,), Evidence.SEEN)
