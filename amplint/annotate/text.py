"""The source with a comment on each line that says what happens to dtypes there, for a terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from amplint.annotate.changes import Changes
from amplint.annotate.markup import source_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.annotate.failing import Failing
    from amplint.annotate.notes import Note
    from amplint.annotate.rows import FileDtypes
    from amplint.report import Line, Piece

MAX_COLUMN = 88
"""The widest line, in columns, that the comments of its neighbours are aligned with."""
TAB = 4

_STYLES = {"bfloat16": "yellow", "float16": "magenta", "float32": "cyan", "float64": "blue"}


def render(file: FileDtypes, lane: int) -> Iterator[Line]:
    """The file's lines, each once and as they stand, tabs as spaces; without line endings. Under a line in which
    something fails a comment marks it."""
    notes = {row: list(of_row) for row, of_row in groupby(Changes(file).notes(lane), key=lambda note: note.at.row)}
    lines = [printable(line) for line in source_lines(file.source)]
    columns = dict(_columns(lines, notes))
    marks = {row: list(of_row) for row, of_row in groupby(_failing(file, lane), key=lambda one: one.span.start.row)}
    for row, line in enumerate(lines, start=1):
        if row in notes:
            gap = " " * (columns[row] - width(line))
            yield [(line + gap, ""), ("  # ", "dim"), *_comment(notes[row])]
        else:
            yield [(line, "")]
        for one in marks.get(row, ()):
            yield _mark(one, file.source.line(row).removeprefix("\ufeff" if row == 1 else ""))


def _failing(file: FileDtypes, lane: int) -> list[Failing]:
    return [one for one in file.failing if lane in one.lanes]


def _mark(failing: Failing, line: str) -> Line:
    """Carets under what fails, as far as it stands on its first line, and why."""
    start, end = failing.span.start, failing.span.end
    before = printable(line[: start.column - 1])
    through = printable(line[: end.column - 1] if end.row == start.row else line)
    column = max(width(before), 2)
    carets = "^" * max(width(through) - column, 1)
    return [("#" + " " * (column - 1), "dim"), (f"{carets} error {failing.code}: {failing.message}", "bold red")]


def printable(line: str) -> str:
    """A line with its tabs as spaces and what a terminal would obey as ``?``."""
    line = line.expandtabs(TAB)
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def width(line: str) -> int:
    """How many columns of a terminal a line takes."""
    if line.isascii():
        return len(line)
    from rich.cells import cell_len

    return cell_len(line)


def _columns(lines: list[str], notes: dict[int, list[Note]]) -> Iterator[tuple[int, int]]:
    """For each row with a comment, the width that its line is filled up to: one for all between two blank lines."""
    for blank, rows in groupby(range(1, len(lines) + 1), key=lambda row: not lines[row - 1].strip()):
        if not blank:
            told = [row for row in rows if row in notes]
            widths = [found for row in told if (found := width(lines[row - 1])) <= MAX_COLUMN]
            yield from ((row, max(widths, default=0)) for row in told)


def _comment(notes: list[Note]) -> Iterator[Piece]:
    for index, note in enumerate(notes):
        style = _STYLES.get(note.after[0], "") if note.after is not None and len(note.after) == 1 else ""
        yield ("; " if index else "", "dim")
        yield (note.text, f"bold {style}" if note.before else style or "dim")
