"""The tensors that a failing line works on, by the names they have in its source."""

from __future__ import annotations

import ast
import linecache
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_MISSING = object()


def failing_operands(step: TracebackType) -> list[tuple[str, torch.Tensor]]:
    """Names, attributes and their tensors that the expression at which a traceback's step stopped works on.

    Nothing is evaluated: only locals, globals, and what instances hold in their own dictionaries is looked at, so no
    property runs, and what a nested call returned is not known.  Before Python 3.11, where the position within the
    line is unknown, the outermost calls of the statement count.
    """
    frame = step.tb_frame
    expression = _expression(frame.f_code.co_filename, step.tb_lineno, _columns(step))
    if expression is None:
        return []
    found: dict[str, torch.Tensor] = {}
    for node in _parts(expression, called=False):
        value = _value(node, frame.f_locals, frame.f_globals)
        if isinstance(value, torch.Tensor):
            found.setdefault(ast.unparse(node), value)
    return list(found.items())


def _parts(node: ast.AST, called: bool) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes of an expression, without those of calls within its calls."""
    if isinstance(node, ast.Call):
        if called:
            return
        called = True
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _parts(child, called)


def _columns(step: TracebackType) -> tuple[int, int, int, int] | None:
    """First and last line, first and last column (bytes) of the instruction, where this Python keeps them."""
    if sys.version_info < (3, 11):
        return None
    positions = list(step.tb_frame.f_code.co_positions())
    first, last, start, end = positions[step.tb_lasti // 2]
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end


def _expression(filename: str, row: int, columns: tuple[int, int, int, int] | None) -> ast.AST | None:
    """The smallest statement that spans the row, or the expression at exactly these columns."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    statement: ast.stmt | None = None
    for node in ast.walk(tree):  # outside in
        if isinstance(node, ast.stmt) and node.lineno <= row <= (node.end_lineno or node.lineno):
            statement = node
        elif (
            isinstance(node, ast.expr)
            and (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == columns
        ):
            return node
    return statement


def _value(node: ast.expr, local: Any, globals_: Any) -> Any:
    if isinstance(node, ast.Name):
        return local.get(node.id, globals_.get(node.id, _MISSING))
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, local, globals_)
        held = getattr(owner, "__dict__", None)
        if not isinstance(held, dict) or isinstance(owner, torch.Tensor):
            return _MISSING
        if isinstance(owner, torch.nn.Module):
            for table in ("_parameters", "_buffers", "_modules"):
                if node.attr in held.get(table, {}):
                    return held[table][node.attr]
        return held.get(node.attr, _MISSING)
    return _MISSING
