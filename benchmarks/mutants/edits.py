"""Edits of a file's text, and where its rows went."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace a stretch of source by ``text``. Rows count from 1, columns from 0 in UTF-8 bytes, as in ``ast``."""

    row: int
    column: int
    end_row: int
    end_column: int
    text: str

    @property
    def added_rows(self) -> int:
        """How many rows the file grows by; negative where it shrinks."""
        return self.text.count("\n") - (self.end_row - self.row)


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The file with all edits made. They must not overlap."""
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    ordered = sorted(edits)
    if any((a.end_row, a.end_column) > (b.row, b.column) for a, b in pairwise(ordered)):
        raise ValueError("the edits overlap")
    for edit in reversed(ordered):
        start, end = starts[edit.row - 1] + edit.column, starts[edit.end_row - 1] + edit.end_column
        data = data[:start] + edit.text.encode() + data[end:]
    return data


def minimal(data: bytes, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The same change with nothing rewritten that stays: an edit for each run of tokens that differs."""
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for edit in edits:
        start = starts[edit.row - 1] + edit.column
        old = _TOKEN.findall(data[start : starts[edit.end_row - 1] + edit.end_column].decode())
        new = _TOKEN.findall(edit.text)
        for tag, first, last, new_first, new_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                begin, end = (start + len("".join(old[:index]).encode()) for index in (first, last))
                found.append(Edit(*_place(starts, begin), *_place(starts, end), "".join(new[new_first:new_last])))
    return tuple(sorted(found))


def _place(starts: list[int], offset: int) -> tuple[int, int]:
    row = bisect_right(starts, offset) - 1
    return row + 1, offset - starts[row]


def row_after(row: int, edits: Sequence[Edit]) -> int:
    """Where an original row lies once the edits are made."""
    return row + sum(edit.added_rows for edit in edits if edit.end_row < row)


def changed_rows(edits: Sequence[Edit]) -> tuple[tuple[int, int], ...]:
    """The first and last row of each edit's place in the edited file."""
    places = []
    for edit in sorted(edits):
        first = row_after(edit.row, [other for other in edits if other is not edit])
        places.append((first, first + edit.text.count("\n")))
    return tuple(places)
