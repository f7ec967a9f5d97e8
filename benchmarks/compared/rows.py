"""The rows of ``rows.jsonl``: one bug in one round of reading."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parent / "rows.jsonl"
VERDICTS = ("as good", "better", "worse", "none", "harmful")
"""``worse``: it leaves or costs something that the merged fix does not. ``none``: found, and no fix applied.
``harmful``: it breaks what worked."""
GOOD = ("as good", "better")
SETTINGS = ("default", "pedantic")


@dataclass(frozen=True, slots=True)
class Row:
    """A bug of ``benchmarks/corpus``, what ``--fix --unsafe-fixes`` made of it, and the reader's verdict.

    ``setting`` is the one in which the bug is found: default options, or ``--pedantic`` with every rule. ``edit`` says
    in short what was changed, ``amplint`` which version did it.
    """

    round: int
    id: str
    repo: str
    path: str
    code: str
    setting: str
    edit: str
    verdict: str
    reason: str
    amplint: str


def load(file: Path = FILE) -> list[Row]:
    """All rows, in the order of the file."""
    return [Row(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def last_round(rows: list[Row]) -> int:
    """The newest round."""
    return max(row.round for row in rows)
