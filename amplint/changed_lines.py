"""Which findings the changed lines of a file bring, also after fixes have moved its lines."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.source import Source
from amplint.unparsable import UNPARSABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.finding import Finding
    from amplint.source import Span

Rows = tuple[int, int]
"""The first and last of some rows."""


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """The rows of a file that are new or changed, as the file stood when it was compared."""

    rows: tuple[Rows, ...]
    data: bytes

    def touched(self, findings: Iterable[Finding], source: Source) -> list[Finding]:
        """The findings of which a place, or a cause in the file, touches a changed row; all where none could be read.

        ``source`` is the file as compared, or as fixes have changed it since.
        """
        findings = list(findings)
        if not findings:
            return findings
        rows = self._rows_in(source)
        return [
            finding
            for finding in findings
            if finding.code == UNPARSABLE.code or any(_touches(span, rows) for span in _spans(finding))
        ]

    def _rows_in(self, source: Source) -> tuple[Rows, ...]:
        """The changed rows, where they lie now. What fixes wrote counts as what they wrote over."""
        if source.data == self.data:
            return self.rows
        before = Source(source.path, self.data).lines
        now = []
        for kind, first, last, new_first, new_last in SequenceMatcher(
            None, before, source.lines, autojunk=False
        ).get_opcodes():
            if kind == "equal":
                now += [
                    (max(start, first + 1) + new_first - first, min(end, last) + new_first - first)
                    for start, end in self.rows
                    if start <= last and first + 1 <= end
                ]
            elif any(start <= last and first + 1 <= end for start, end in self.rows):
                now.append((new_first + 1, new_last))
        return tuple(now)


def _spans(finding: Finding) -> list[Span]:
    causes = (cause.span for cause in finding.causes if cause.filename == finding.filename)
    also = (place.span for place in finding.also if place.filename == finding.filename)
    return [finding.span, *causes, *also]


def _touches(span: Span, rows: tuple[Rows, ...]) -> bool:
    return any(first <= span.last_row and span.start.row <= last for first, last in rows)
