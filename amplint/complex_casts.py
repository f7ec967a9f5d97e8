"""The gate that every fix goes through: no cast of what may be complex, since that drops the phase in silence."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.infer.flow.complex_values import complex_values, speaks_of_complex
from amplint.infer.syntax.bodies import once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.finding import Edit, Fix
    from amplint.source import Location, Source

_CASTS = frozenset(("float", "double", "half", "bfloat16", "to", "type", "type_as"))
_TRAILER = re.compile(r"\)*\s*\.(\w+)\(")
_DTYPE = re.compile(r"\bdtype\s*=")


def casts_complex(source: Source, fix: Fix) -> bool:
    """Whether a fix casts, or gives a dtype to, something that may be complex."""
    if not speaks_of_complex(source.data):
        return False
    held = complex_values(source.tree)
    return any(held.may_be_complex(node, edit.span.start.row) for edit in fix.edits for node in _cast(source, edit))


def _cast(source: Source, edit: Edit) -> Iterator[ast.expr]:
    """The expressions that an edit casts."""
    trailer = _TRAILER.match(edit.content)
    if trailer is not None:
        if trailer[1] in _CASTS:
            yield from _ending(source, edit.span.start)
        return
    written = _parsed(edit.content)
    for node in ast.walk(written) if written is not None else ():
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS:
            yield node.func.value
        if any(keyword.arg == "dtype" for keyword in node.keywords):
            yield from node.args
    if written is None and _DTYPE.search(edit.content):
        yield from _call_around(source, edit.span.start)


def _parsed(text: str) -> ast.AST | None:
    """What an edit writes, if that is whole expressions or statements."""
    try:
        return ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _ending(source: Source, place: Location) -> Iterator[ast.expr]:
    """The expression that a trailer at a place belongs to: what ends there, else what parentheses end there hold."""
    on_row = [(source.span(node), node) for node in _by_last_row(source.tree).get(place.row, [])]
    ending = [(span.start, node) for span, node in on_row if span.end == place]
    if ending:
        yield max(ending, key=lambda pair: pair[0])[1]
        return
    inner = len(source.line(place.row)[: place.column - 1].rstrip(") ")) + 1
    held = [(span.start, node) for span, node in on_row if span.end.column == inner]
    if held:
        yield min(held, key=lambda pair: pair[0])[1]


@once_for_each_node
def _by_last_row(tree: ast.Module) -> dict[int, list[ast.expr]]:
    """The expressions of a file by the line on which they end."""
    found: dict[int, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            found.setdefault(node.end_lineno or node.lineno, []).append(node)
    return found


def _call_around(source: Source, place: Location) -> list[ast.expr]:
    """The arguments of the innermost call that holds a place."""
    calls = [(source.span(node), node) for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    around = [(span.start, node) for span, node in calls if span.start <= place <= span.end]
    return max(around, key=lambda pair: pair[0])[1].args if around else []
