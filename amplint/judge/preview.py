"""Preview: kinds of findings that are told only to who asks for more, since readers called too few of them right.

``amplint/data/preview.json`` has the kinds. ``python benchmarks/judged --fresh --kinds`` writes it from what readers
said of findings in packages that nobody had looked at before.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from amplint.finding import Certainty, Severity

FILE = Path(__file__).resolve().parent.parent / "data" / "preview.json"


@dataclass(frozen=True, slots=True)
class Kind:
    """What one rule finds of one certainty and severity that holds with half weights only, or under autocast too.

    A rule's errors and its warnings rest on different claims: a missing kernel of the newest torch, and of an old one.

    ``right`` is the share, 0 to 1, of those judged that readers called right, the mean of ``packages``.
    """

    code: str
    half_weights_only: bool
    certainty: str
    severity: str
    right: float
    packages: int

    def __str__(self) -> str:
        where = "with half weights only" if self.half_weights_only else "under autocast"
        share = f"{self.right:.0%} right at first sight, in {self.packages} packages"
        return f"{self.severity}s that are {self.certainty} and hold {where} ({share})"


@cache
def kinds() -> tuple[Kind, ...]:
    """The kinds in preview, in the order of their codes."""
    return tuple(Kind(**row) for row in json.loads(FILE.read_text(encoding="utf-8")))


def of_rule(code: str) -> tuple[Kind, ...]:
    """The kinds of a rule's findings that are in preview."""
    return tuple(kind for kind in kinds() if kind.code == code)


def in_preview(code: str, half_weights_only: bool, certainty: Certainty | None, severity: Severity) -> bool:
    """Whether findings of a rule of some certainty and severity that hold with half weights only, or under autocast
    too, are."""
    asked = (half_weights_only, certainty, severity)
    return any((kind.half_weights_only, kind.certainty, kind.severity) == asked for kind in of_rule(code))
