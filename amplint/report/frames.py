"""Marked lines of a source file, in the manner of rustc."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.report.columns import clipped, columns, fold, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.report import Line
    from amplint.source import Source, Span

GUTTER = "bold blue"
_LABEL = 40
"""Columns that a longer label gets at least where it stands below its carets."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A span to underline and what to say beside it; ``primary`` for the finding's own."""

    span: Span
    label: str
    primary: bool


def gutter(digits: int, row: int | None = None) -> tuple[str, str]:
    """The row's number, or none, and the bar behind it."""
    return (f"{'' if row is None else row:>{digits}} | ", GUTTER)


def frame(source: Source, marks: Sequence[Mark], digits: int, colour: str, room: int | None) -> Iterator[Line]:
    """The marked lines in source order, gaps shown as ``...``. Lines longer than ``room`` columns are cut around what
    is marked in them."""
    yield [gutter(digits)]
    places = sorted(
        {_Underline.first(mark) for mark in marks} | {_Underline.last(mark) for mark in marks if _long(mark)}
    )
    previous = 0
    for row, group in groupby(places, key=lambda place: place.row):
        if previous and row == previous + 2:
            yield [gutter(digits, row - 1), (clipped(shown(source.line(row - 1)), 0, room), "")]
        elif previous and row > previous + 2:
            yield [("...", GUTTER)]
        line = source.line(row)
        carets = [(*place.carets(line), place) for place in group]
        left = 0 if room is None else _left(columns(line), [(start, end) for start, end, _ in carets], room)
        yield [gutter(digits, row), (clipped(shown(line), left, room), "")]
        for start, end, place in carets:
            style = f"bold {colour}" if place.primary else GUTTER
            for text in _below(start - left, end - left, "^" if place.primary else "-", place.label, room):
                yield [gutter(digits), (text, style)]
        previous = row
    yield [gutter(digits)]


def _left(length: int, carets: Sequence[tuple[int, int]], room: int) -> int:
    """The first column to show of a line, so that what is marked in it is seen."""
    start, end = min(start for start, _ in carets), max(end for _, end in carets)
    if length <= room or end < room:
        return 0
    return max(min(end + 1 - room, start - 1), 0)


def _below(start: int, end: int, sign: str, label: str, room: int | None) -> Iterator[str]:
    """The carets from one column to another, and the label: beside them where it fits, else below."""
    if room is not None:
        end = min(end, room)
    carets = " " * start + sign * max(end - start, 1)
    if room is None or not label or columns(carets) + 1 + columns(label) <= room:
        yield f"{carets} {label}".rstrip()
        return
    yield carets
    indent = max(min(start, room - min(columns(label), _LABEL)), 0)
    for line in fold(label, max(room - indent, 1)):
        yield " " * indent + line


def _long(mark: Mark) -> bool:
    return mark.span.end.row > mark.span.start.row


@dataclass(frozen=True, slots=True, order=True)
class _Underline:
    """Carets under part of one row: columns from 1, ``end`` exclusive, 0 for the end of the line."""

    row: int
    start: int
    end: int
    primary: bool
    label: str

    @classmethod
    def first(cls, mark: Mark) -> _Underline:
        span = mark.span
        if _long(mark):
            return cls(span.start.row, span.start.column, 0, mark.primary, "")
        return cls(span.start.row, span.start.column, span.end.column, mark.primary, mark.label)

    @classmethod
    def last(cls, mark: Mark) -> _Underline:
        return cls(mark.span.end.row, 0, mark.span.end.column, mark.primary, mark.label)

    def carets(self, line: str) -> tuple[int, int]:
        """The terminal columns from 0 where the carets begin and end."""
        start = self.start or len(line) - len(line.lstrip()) + 1
        end = self.end or len(line) + 1
        before = columns(line[: start - 1])
        return before, max(columns(line[: end - 1]), before + 1)
