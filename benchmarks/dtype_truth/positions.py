"""Which expression a frame is evaluating, by the positions that the compiler keeps for every instruction."""

from __future__ import annotations

import ast
import builtins
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.source import Source

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from dtype_truth.truth import Position

_Raw = tuple[int | None, int | None, int | None, int | None]
_OF_ONE_VALUE = frozenset({"abs", "getattr", "pow", "round", "sum"})
"""Builtins whose value is what torch gave last while they ran; ``list(map(relu, xs))`` is not what relu gave."""


def position_of(frame: FrameType) -> Position | None:
    """The expression or augmented assignment under evaluation; None where its value is none that torch gives."""
    raw = _raw_positions(frame.f_code)[frame.f_lasti // 2]
    return _nodes(frame.f_code.co_filename).get(raw)


@cache
def _raw_positions(code: CodeType) -> list[_Raw]:
    """(row, end row, column, end column) for every instruction, columns from 0 in UTF-8 bytes. Needs Python 3.11."""
    return list(code.co_positions())


@cache
def _nodes(filename: str) -> dict[_Raw, Position]:
    """Positions as the compiler keeps them, and as the syntax tree has them.

    They differ for a method call or attribute that starts on an earlier row than its name: the compiler lets the
    instruction start at the name.
    """
    source = Source(Path(filename), Path(filename).read_bytes())
    found: dict[_Raw, Position] = {}
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.expr, ast.AugAssign)) or _collects(node):
            continue
        span = source.span(node)
        position = (span.start.row, span.start.column, span.end.row, span.end.column)
        found[node.lineno, node.end_lineno, node.col_offset, node.end_col_offset] = position
        named = node.func if isinstance(node, ast.Call) else node
        if isinstance(named, ast.Attribute) and named.end_lineno is not None and named.end_lineno != node.lineno:
            start = (named.end_col_offset or 0) - len(named.attr.encode())
            found[named.end_lineno, node.end_lineno, start, node.end_col_offset] = position
    return found


def _collects(node: ast.AST) -> bool:
    """Whether the node calls a builtin that has other values than what torch gave while it ran."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return hasattr(builtins, node.func.id) and node.func.id not in _OF_ONE_VALUE
