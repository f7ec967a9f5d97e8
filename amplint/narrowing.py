"""What a run leaves out of what is found in one file: what a baseline knows, and what no changed line brings."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amplint.changed_lines import ChangedLines
    from amplint.finding import Finding
    from amplint.source import Source


@dataclass(frozen=True, slots=True)
class Narrowing:
    """For one file: how often a baseline has each fingerprint, and which lines changed, None where that is all one."""

    known: Mapping[str, int] = field(default_factory=dict)
    changed: ChangedLines | None = None

    def split(self, findings: Iterable[Finding], source: Source) -> tuple[list[Finding], list[Finding]]:
        """The findings that stay, and those that the baseline knows; the rest is left out."""
        left, known = [], []
        unmet = Counter(self.known)
        for finding in findings:
            if unmet[finding.fingerprint] > 0:
                unmet[finding.fingerprint] -= 1
                known.append(finding)
            else:
                left.append(finding)
        return (self.changed.touched(left, source) if self.changed is not None else left), known


WHOLE = Narrowing()
"""Leaves nothing out."""
