"""Which fixes are applied, and which of them together."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from amplint.finding import Applicability, Finding
from amplint.fix.edits import Change, range_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.source import Source


def allowed(finding: Finding, highest: Applicability) -> bool:
    """Whether a finding's fix may be applied: safe fixes always, unsafe ones only if asked for, shown ones never."""
    if finding.fix is None or not finding.fix.edits:
        return False
    return finding.fix.applicability is Applicability.SAFE or (
        highest is Applicability.UNSAFE and finding.fix.applicability is Applicability.UNSAFE
    )


def without_overlaps(findings: Iterable[Finding], source: Source) -> list[Finding]:
    """The findings whose fixes can be applied together, first by position; the others wait for the next pass.

    Of two fixes of one place the unsafe one goes first: it changes what the code means, the safe one only how it is
    spelled. The same insertion wanted by two fixes (an import) is no conflict and is made once.
    """
    chosen: list[Finding] = []
    taken = _Taken()
    decided: dict[int, bool] = {}
    for finding in sorted(findings, key=_precedence):
        assert finding.fix is not None
        edits = finding.fix.edits
        if id(edits) not in decided:
            decided[id(edits)] = taken.take({range_of(edit, source) for edit in edits})
        if decided[id(edits)]:
            chosen.append(finding)
    return chosen


def _precedence(finding: Finding) -> tuple[bool, object]:
    return (finding.fix is not None and finding.fix.applicability is Applicability.SAFE, finding.sort_key)


class _Taken:
    """Changes of several fixes, none of which touches another's: at a shared border their order would be arbitrary."""

    def __init__(self) -> None:
        self._known: set[Change] = set()
        self._sorted: list[Change] = []
        self._longest = 0

    def take(self, changes: set[Change]) -> bool:
        """Add the changes of a fix; False, and none is added, where one of them touches another's."""
        new = changes - self._known
        if any(self._is_touched(change, changes) for change in new):
            return False
        for change in new:
            insort(self._sorted, change)
            self._longest = max(self._longest, change[1] - change[0])
        self._known |= new
        return True

    def _is_touched(self, change: Change, own: set[Change]) -> bool:
        start, end, _ = change
        first = bisect_left(self._sorted, (start - self._longest, 0, ""))
        for index in range(first, len(self._sorted)):
            other = self._sorted[index]
            if other[0] > end:
                return False
            if other[1] >= start and other not in own:
                return True
        return False
