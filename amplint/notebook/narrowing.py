"""What may be done in one step in a notebook, whose cells are run one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.finding import Applicability
from amplint.notebook.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.finding import Edit, Finding
    from amplint.source import Source


def told_together(findings: Iterable[Finding], source: Source) -> list[list[Finding]]:
    """The findings that may be joined as one: all of a Python file, or those of one cell in a notebook's program.

    A fix that would change two cells is only shown, and one that would change a magic is left out.
    """
    layout = Layout.of(source)
    if layout is None:
        return [list(findings)]
    cells: dict[int, list[Finding]] = {}
    for finding in findings:
        cells.setdefault(layout.index(finding.span.start), []).append(_narrowed(finding, layout))
    return list(cells.values())


def in_the_same_cell(edits: Sequence[Edit], others: Iterable[Edit], source: Source) -> list[Edit]:
    """Those of the ``others`` that lie in a cell of ``edits``; all of them where the source is no notebook's."""
    layout = Layout.of(source)
    if layout is None:
        return list(others)
    touched = layout.cells(edit.span for edit in edits)
    return [edit for edit in others if set(layout.cells([edit.span])) <= set(touched)]


def _narrowed(finding: Finding, layout: Layout) -> Finding:
    fix = finding.fix
    if fix is None:
        return finding
    if any(_touches_a_mark(edit, layout) or len(layout.cells([edit.span])) > 1 for edit in fix.edits):
        return replace(finding, fix=None)
    cells = layout.cells(edit.span for edit in fix.edits)
    if len(cells) < 2:
        return finding
    named = f"{', '.join(map(str, cells[:-1]))} and {cells[-1]}"
    message = f"{fix.message}; by hand, since it changes cells {named}"
    return replace(finding, fix=replace(fix, applicability=Applicability.DISPLAY, message=message))


def _touches_a_mark(edit: Edit, layout: Layout) -> bool:
    """Whether an edit changes what stands in for a magic, or joins a row to the line that parts two cells."""
    start, end = edit.span.start, edit.span.end
    whole_lines = edit.content.endswith("\n") or (not edit.content and start.column == 1)
    for row in (*layout.marks, *layout.stand_ins):
        if not start.row <= row <= end.row or (row == end.row and end.column == 1 and whole_lines):
            continue
        python = layout.stand_ins.get(row, range(0))
        within = start.row == end.row and start.column in python and end.column in python
        if not within or "\n" in edit.content:
            return True
    return False
