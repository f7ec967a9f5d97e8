"""Autocast regions around statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.source import Span

if TYPE_CHECKING:
    import libcst as cst

    from amplint.visit import Visit


def without_autocast(visit: Visit, value: cst.CSTNode, device: str) -> list[Edit] | None:
    """Edits that put a statement into a region with autocast switched off, on a line of its own.

    ``value`` is what the statement returns or assigns: nothing else of it is computed there. ``device`` is an
    expression for the device type. None for another statement, for one of several on a line, or of several lines.
    """
    import libcst as cst

    statement = visit.parent(value)
    line = visit.parent(statement) if isinstance(statement, cst.Return | cst.Assign | cst.AnnAssign) else None
    if statement is None or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    span = visit.span(statement)
    indent = visit.source.line(span.start.row)[: span.start.column - 1]
    if span.start.row != span.end.row or indent.strip():
        return None
    torch, imports = visit.import_name("torch")
    deeper = "\t" if indent.startswith("\t") else "    "
    opened = f"with {torch}.autocast({device}, enabled=False):\n{indent}{deeper}"
    return [*imports, Edit(Span(span.start, span.start), opened)]
