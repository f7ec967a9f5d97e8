"""Edits of one text: applying them, and where places of the text lie afterwards."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.finding import Edit

Change: TypeAlias = tuple[int, int, str]
"""The first and last offset of what is replaced, and the text that replaces it."""


def range_of(edit: Edit, source: Source) -> Change:
    """An edit with its text as it was given."""
    return source.offset(edit.span.start), source.offset(edit.span.end), edit.content


def changes(source: Source, edits: Iterable[Edit]) -> list[Change]:
    """What edits change in a source, in order and in its own newline style; identical edits are one change."""
    text = source.text
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    ranges = sorted({range_of(edit, source): None for edit in edits}, key=lambda change: change[:2])
    return [(start, end, content.replace("\r\n", "\n").replace("\n", newline)) for start, end, content in ranges]


def apply_edits(source: Source, edits: Iterable[Edit]) -> Source:
    """The source with edits applied, in its own encoding and newline style; identical edits are applied once.

    Raises UnicodeEncodeError where the encoding cannot hold the new text.
    """
    return apply_changes(source, changes(source, edits))


def apply_changes(source: Source, made: Sequence[Change]) -> Source:
    """The source with changes made. Raises UnicodeEncodeError where the encoding cannot hold the new text."""
    text = source.text
    pieces, position = [], 0
    for start, end, content in made:
        pieces += [text[position:start], content]
        position = max(position, end)
    pieces.append(text[position:])
    return Source(source.path, "".join(pieces).encode(source.encoding))


class Moves:
    """Where the places of a text lie after changes."""

    def __init__(self, made: Sequence[Change]) -> None:
        self._starts = [start for start, _, _ in made]
        self._ends = [end for _, end, _ in made]
        self._lengths = [len(content) for _, _, content in made]
        self._shifts = [0, *accumulate(len(content) - (end - start) for start, end, content in made)]

    def after(self, offset: int) -> tuple[int, int]:
        """Between which offsets a place lies afterwards: one in the midst of a change is anywhere in the new text."""
        index = bisect_right(self._starts, offset) - 1
        while index >= 0 and self._starts[index] == offset == self._ends[index] and self._within(index - 1, offset):
            index -= 1
        if index >= 0 and self._within(index, offset):
            last = bisect_right(self._starts, offset) - 1
            start = self._starts[index] + self._shifts[index]
            return start, self._starts[last] + self._shifts[last] + self._lengths[last]
        moved = offset + self._shifts[bisect_left(self._ends, offset + 1)]
        return moved, moved

    def _within(self, index: int, offset: int) -> bool:
        if index < 0:
            return False
        start, end = self._starts[index], self._ends[index]
        return start <= offset < end or start == offset == end
