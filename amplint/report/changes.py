"""A fix as a small diff: the lines that it changes, with their numbers and the lines beside them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.report.columns import clipped, shown
from amplint.report.frames import GUTTER, gutter
from amplint.source import Location, Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Edit
    from amplint.report import Line


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Rows from ``first`` on that are replaced: what stood there, and what stands there then."""

    first: int
    before: list[str]
    after: list[str]

    @property
    def last(self) -> int:
        """The last row replaced; the one before ``first`` where lines are only inserted."""
        return self.first + len(self.before) - 1


def change(edits: Sequence[Edit], source: Source, digits: int, room: int | None) -> Iterator[Line]:
    """The lines before (``-``) the edits and after (``+``), with one line around, which is cut to ``room`` columns.

    Rows count as they do in the fixed file.
    """
    try:
        hunks = list(_hunks(edits, source))
    except (SourceError, IndexError):
        return
    digits = max(digits, *(len(str(hunk.last + len(hunk.after))) for hunk in hunks)) if hunks else digits
    shown_to = moved = 0
    for index, hunk in enumerate(hunks):
        rows = range(max(hunk.first - 1, shown_to + 1, 1), hunk.first)
        if shown_to and hunk.first - 1 > shown_to + 1:
            yield [("...", GUTTER)]
        for row in rows:
            yield [gutter(digits, row + moved), (clipped(shown(source.line(row)), 0, room), "")]
        for number, line in enumerate(hunk.before, hunk.first + moved):
            yield [(f"{number:>{digits}} - ", "red"), (shown(line), "red")]
        for number, line in enumerate(hunk.after, hunk.first + moved):
            yield [(f"{number:>{digits}} + ", "green"), (shown(line), "green")]
        moved += len(hunk.after) - len(hunk.before)
        shown_to = hunk.last
        following = hunks[index + 1].first if index + 1 < len(hunks) else len(source.lines) + 1
        if hunk.last + 1 < following:
            shown_to += 1
            yield [gutter(digits, shown_to + moved), (clipped(shown(source.line(shown_to)), 0, room), "")]


def _hunks(edits: Sequence[Edit], source: Source) -> Iterator[_Hunk]:
    from difflib import SequenceMatcher

    for first, last, together in _by_rows(edits):
        before, after = _rewritten(source, first, last, together)
        for tag, start, end, new_start, new_end in SequenceMatcher(None, before, after).get_opcodes():
            if tag != "equal":
                yield _Hunk(first + start, before[start:end], after[new_start:new_end])


def _by_rows(edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Edits grouped by the rows that they touch: first row, last row, edits."""
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(set(edits)):
        first, last = edit.span.start.row, edit.span.end.row
        if groups and first <= groups[-1][1]:
            top, bottom, members = groups[-1]
            groups[-1] = (top, max(bottom, last), [*members, edit])
        else:
            groups.append((first, last, [edit]))
    return groups


def _rewritten(source: Source, first: int, last: int, edits: list[Edit]) -> tuple[list[str], list[str]]:
    """Some rows before and after the edits that lie in them."""
    last = min(last, len(source.lines))
    position, end = source.offset(Location(first, 1)), source.offset(Location(last + 1, 1))
    old, new = source.text[position:end], ""
    for edit in edits:
        new += source.text[position : source.offset(edit.span.start)] + edit.content
        position = source.offset(edit.span.end)
    new += source.text[position:end]
    return _lines(old), _lines(new)


def _lines(text: str) -> list[str]:
    """Lines as Python counts them, without their endings: a last line that gets one is none that changes."""
    return [line.rstrip("\r\n") for line in io.StringIO(text, newline="")]
