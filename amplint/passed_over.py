"""What a run passes over: how many files that hold Python, and why."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from amplint.frozen import dataclass
from amplint.notebook import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amplint.finding import FileResult

EXCLUDED, HIDDEN, IGNORED, NOTEBOOKS = "excluded", "in hidden folders", "named in .gitignore", "notebooks"
APPLE = "of macOS's own"

LOOKED_AT = 50_000
"""Entries below passed-over folders to look at; counting more would take longer than a small check."""


class Passed(NamedTuple):
    """A file or folder that was passed over: the reason, and what says so where something does."""

    path: Path
    reason: str
    because: str = ""


@dataclass(slots=True)
class PassedOver:
    """What was passed over, with the number of files there, and these numbers by reason; ``more`` where not all were
    counted."""

    counts: dict[Passed, int] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    more: bool = False
    _seen: set[Path] = field(default_factory=set)
    _looked_at: int = 0

    def count(self, passed: Iterable[Passed]) -> None:
        """Count files, and those below folders, each with the reason why it was passed over."""
        for one in passed:
            if one.path not in self._seen:
                self._seen.add(one.path)
                self.counts[one] = sum(self._below(one.path)) if one.path.is_dir() else 1
                self.reasons[one.reason] += self.counts[one]

    def take(self, results: Iterable[FileResult]) -> list[FileResult]:
        """Count the files that were passed over once they were read, and return what came of the others."""
        left = []
        for result in results:
            if result.passed_over is None:
                left.append(result)
            else:
                self.reasons[result.passed_over] += 1
        return left

    def _below(self, folder: Path) -> Iterator[int]:
        """How many Python files each folder holds. Links to folders are not followed."""
        for _, folders, names in os.walk(folder):
            if self._looked_at > LOOKED_AT:
                self.more = True
                return
            self._looked_at += len(folders) + len(names)
            yield sum(name.endswith((".py", SUFFIX)) for name in names)

    def summary(self) -> str | None:
        """One sentence, None where nothing was passed over."""
        total = sum(self.reasons.values())
        if not total:
            return None
        parts = ", ".join(f"{number:,} {reason}" for reason, number in self.reasons.most_common() if number)
        least = "At least " if self.more else ""
        return f"{least}{total:,} file{' was' if total == 1 else 's were'} passed over: {parts}."
