"""What a run found in each release, kept as JSON so that later runs can be held against it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ecosystem.releases import Release

if TYPE_CHECKING:
    from pathlib import Path

API = "AMP6"
"""Prefix of the rules about the API, whose findings are counted apart."""


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A finding: ``path`` from the folder of the release, ``line`` from 1; ``also``: the other lines that it names."""

    path: str
    line: int
    code: str
    severity: str
    certainty: str
    scenarios: tuple[str, ...]
    message: str
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """One release: its size, the time of one ``amplint check`` in seconds, and the findings."""

    release: Release
    files: int
    lines: int
    wall: float
    cpu: float
    findings: tuple[Found, ...]

    @property
    def api(self) -> int:
        """How many of the findings are of rules about the API."""
        return sum(finding.code.startswith(API) for finding in self.findings)


class ResultError(Exception):
    """A file does not hold the result of a run."""


def save(checked: list[Checked], path: Path) -> None:
    """Write a result."""
    path.write_text(json.dumps({"releases": [asdict(one) for one in checked]}, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> list[Checked]:
    """Read a result. Raises ResultError."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["releases"]
        return [
            Checked(
                **row | {"release": Release(**row["release"])} | {"findings": tuple(map(_finding, row["findings"]))}
            )
            for row in rows
        ]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ResultError(f"{path} is no result of this benchmark: {error!r}") from error


def _finding(row: dict[str, Any]) -> Found:
    return Found(**row | {"scenarios": tuple(row["scenarios"]), "also": tuple(row.get("also", ()))})
