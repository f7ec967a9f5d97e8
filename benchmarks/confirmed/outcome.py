"""What a run made of a finding, as it is kept: JSON objects, one a line, in the order of library and place."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem.releases import listed
from halves import KEPT, half

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).resolve().parent
OUTCOMES = HERE / "outcomes.jsonl"

CONFIRMED, RAN, ANOTHER, UNREACHED, ALONE, UNRUNNABLE = (
    "confirmed",
    "ran and did not fail",
    "something else failed first",
    "not reached",
    "only the operation ran",
    "not runnable",
)
OUTCOME = (CONFIRMED, RAN, ANOTHER, UNREACHED, ALONE, UNRUNNABLE)
"""The one that says most comes first. Of an operation that ran alone, amplint itself chose the dtypes of the operands:
it counts neither for nor against it."""


@dataclass(frozen=True, slots=True, order=True)
class Outcome:
    """A finding in a scenario that it names. ``error`` is one line of what the run said, ``amplint`` the version."""

    library: str
    release: str
    path: str
    line: int
    code: str
    fingerprint: str
    scenario: str
    severity: str
    certainty: str
    outcome: str
    error: str
    amplint: str

    @property
    def finding(self) -> tuple[str, str, str, str]:
        return self.library, self.path, self.code, self.fingerprint


@dataclass(frozen=True, slots=True, order=True)
class Library:
    """A library that was run whole, with the number of its findings that are no matter for a run."""

    library: str
    release: str
    amplint: str
    others: int


class OutcomesError(Exception):
    """A file of outcomes cannot be read."""


def load(path: Path = OUTCOMES) -> tuple[list[Library], list[Outcome]]:
    """What was kept. Raises OutcomesError."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
        libraries = [Library(**row) for row in rows if "others" in row]
        outcomes = [Outcome(**row) for row in rows if "others" not in row]
    except (OSError, ValueError, TypeError) as error:
        raise OutcomesError(f"{path} holds no outcomes: {error!r}") from error
    return libraries, outcomes


def save(libraries: Iterable[Library], outcomes: Iterable[Outcome], path: Path = OUTCOMES) -> None:
    """Keep outcomes: a line for each library, then one for each finding and scenario."""
    rows = [*map(asdict, sorted(libraries)), *map(asdict, sorted(outcomes))]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def at_first_sight(library: str) -> bool:
    """Whether a library is only ever counted: of the half that is kept back, and not of the releases looked at."""
    return half(library) == KEPT and library not in {release.package for release in listed()}
