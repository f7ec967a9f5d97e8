"""Findings of a notebook's program, taken to its cells."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from amplint.finding import Cause, Edit, Place
from amplint.source import Location, Span

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amplint.finding import Finding, Fix, HeldDoubt
    from amplint.notebook.layout import Layout

_LINE = re.compile(r"\bline (\d+)\b")
"""How messages name a line of their own file."""

_P = TypeVar("_P", Cause, Place)


class Placing:
    """Takes what lies in the program of the notebook at ``path`` to its cells, whose texts are given by number."""

    def __init__(self, path: Path, layout: Layout, texts: Mapping[int, str]) -> None:
        self._path = path
        self._layout = layout
        self._texts = texts

    def finding(self, finding: Finding) -> Finding:
        """A finding with all its places in cells."""
        cell, span = self._layout.placed(finding.span)
        return replace(
            finding,
            cell=cell,
            span=span,
            message=self._told(finding.message, cell),
            causes=tuple(self._place(cause) for cause in finding.causes),
            also=tuple(self._place(place) for place in finding.also),
            culprit=self._place(finding.culprit) if finding.culprit is not None else None,
            doubts=tuple(self._doubt(held) for held in finding.doubts),
            fix=self._fix(finding.fix) if finding.fix is not None else None,
        )

    def _told(self, message: str, cell: int) -> str:
        """A message whose line numbers are those of cells."""

        def placed(line: re.Match[str]) -> str:
            place = Location(int(line[1]), 2)
            other, span = self._layout.placed(Span(place, place))
            return f"line {span.start.row}{f' of cell {other}' if other != cell else ''}"

        return _LINE.sub(placed, message)

    def _place(self, place: _P) -> _P:
        if place.filename != self._path:
            return place
        cell, span = self._layout.placed(place.span)
        return replace(place, cell=cell, span=span)

    def _doubt(self, held: HeldDoubt) -> HeldDoubt:
        if held.span is None:
            return held
        cell, span = self._layout.placed(held.span)
        return replace(held, cell=cell, span=span)

    def _fix(self, fix: Fix) -> Fix:
        return replace(fix, edits=tuple(self._edit(edit) for edit in fix.edits))

    def _edit(self, edit: Edit) -> Edit:
        """An edit within its cell. In the program a line feed follows the cell; here none does."""
        cell, span = self._layout.placed(edit.span)
        start, content = span.start, edit.content
        lines = [line.rstrip("\r\n") for line in rows_of(self._texts[cell])]
        if span.end.row > len(lines):
            end = Location(len(lines), len(lines[-1]) + 1)
            if start.row > len(lines):
                start, content = end, "\n" * bool(content) + content.removesuffix("\n")
            elif content:
                content = content.removesuffix("\n")
            elif start.row > 1:
                start = Location(start.row - 1, len(lines[start.row - 2]) + 1)
            span = Span(start, end)
        return Edit(span, content, cell)


def rows_of(text: str) -> list[str]:
    """The lines of a cell with their endings, as Python counts them; an empty one at the end if a line ending is."""
    lines = list(io.StringIO(text, newline=""))
    return lines if lines and not lines[-1].endswith(("\n", "\r")) else [*lines, ""]
