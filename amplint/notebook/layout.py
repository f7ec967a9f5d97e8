"""Where the cells of a notebook lie in its program, as the program's text says.

The program begins with ``#nb0``, a word that no cell uses. ``#nb0 cell 3`` is the line before the rows of cell 3,
``#nb0 magic 7`` at the end of a row says that part of it stands in for the seventh magic, and ``#nb0 end`` is the last
line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.notebook import is_notebook
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD = "#{word}\n#\n"
"""Two lines, so that none of the program's own is taken for the one that names an encoding."""
END = "#{word} end\n"
_HEAD = re.compile(r"#(nb\d+)\n")
_TIMED = re.compile(r"\s*0 *;")
"""What stands in for ``%time`` before a statement."""


def cell_mark(word: str, number: int) -> str:
    """The line before a cell."""
    return f"#{word} cell {number}\n"


def magic_mark(word: str) -> re.Pattern[str]:
    """What ends a row in which something stands in for a magic."""
    return re.compile(rf"#{word} magic (?P<number>\d+)(?=[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Layout:
    """The cells of a program: their numbers, the rows of the lines before them and of the last line, and the rows that
    hold stand-ins, each with the columns in which an edit may lie."""

    word: str
    numbers: tuple[int, ...]
    marks: tuple[int, ...]
    stand_ins: dict[int, range]

    @classmethod
    def of(cls, source: Source) -> Layout | None:
        """The layout of a notebook's program; None for other source."""
        head = _HEAD.match(source.text) if is_notebook(source.path) else None
        if head is None:
            return None
        word = head[1]
        cell, magic = re.compile(rf"#{word} (?:cell (\d+)|end)\n"), magic_mark(word)
        numbers: list[int] = []
        marks: list[int] = []
        stand_ins: dict[int, range] = {}
        for row, line in enumerate(source.lines, 1):
            found = cell.fullmatch(line)
            if found is not None:
                marks.append(row)
                numbers += [int(found[1])] if found[1] else []
            elif (mark := magic.search(line)) is not None:
                timed = _TIMED.match(line)
                stand_ins[row] = range(timed.end() + 1, mark.start() + 1) if timed is not None else range(0)
        return cls(word, tuple(numbers), tuple(marks), stand_ins)

    def texts(self, source: Source) -> list[str]:
        """The text of each cell in a program of this layout, without the line feed that ends each there."""
        found = []
        for mark, end in zip(self.marks, self.marks[1:], strict=False):
            text = "".join(source.lines[mark : end - 1])
            found.append(text.removesuffix("\n"))
        return found

    def index(self, location: Location) -> int:
        """Which of the cells a place of the program lies in; the start of the line before a cell ends the one above."""
        row = location.row - (location.column == 1 and location.row in self.marks)
        return min(max(bisect_right(self.marks, row) - 1, 0), len(self.numbers) - 1)

    def placed(self, span: Span) -> tuple[int, Span]:
        """The number of the cell that a span of the program begins in, and the span within it."""
        index = self.index(span.start)
        above = self.marks[index]
        start = Location(max(span.start.row - above, 1), span.start.column)
        return self.numbers[index], Span(start, Location(max(span.end.row - above, 1), span.end.column))

    def cells(self, spans: Iterable[Span]) -> list[int]:
        """The numbers of the cells that spans touch, in order."""
        return sorted({self.numbers[self.index(place)] for span in spans for place in (span.start, span.end)})
