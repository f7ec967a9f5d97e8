"""What a traceback knows: the statement that failed, its names, and the values it compared."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)
_CALLS = {"len", "int", "isinstance", "max", "min", "sum", "float", "abs", "type", "tuple", "list"}
_METHODS = {"size", "dim", "ndimension", "numel", "keys"}
MISSING = object()


@dataclass(frozen=True)
class Place:
    """One frame of a traceback: its failing statement and the ``if`` and ``with`` blocks around it, inside out."""

    frame: FrameType
    line: int
    statement: ast.stmt | None
    around: tuple[ast.stmt, ...]

    def evaluate(self, node: ast.expr) -> Any:
        """The value of ``node`` in this frame, or MISSING: names, attributes, items, arithmetic, harmless calls."""
        if not all(_harmless(part) for part in ast.walk(node)):
            return MISSING
        try:
            code = compile(ast.fix_missing_locations(ast.Expression(node)), "<amplint>", "eval")
            return eval(code, self.frame.f_globals, dict(self.frame.f_locals))
        except Exception:
            return MISSING

    def names(self) -> set[str]:
        """Names on the failing statement; of ``self.x`` and ``config.x`` also ``x``."""
        if self.statement is None:
            return set()
        parts = list(_own_parts(self.statement))
        if isinstance(self.statement, ast.Raise):
            parts += [part for block in self.around[:1] if isinstance(block, ast.If) for part in ast.walk(block.test)]
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        names |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
        return names | {
            part.slice.value
            for part in parts
            if isinstance(part, ast.Subscript)
            and isinstance(part.slice, ast.Constant)
            and isinstance(part.slice.value, str)
        }


@dataclass(frozen=True)
class Comparison:
    """``left op right`` that should have held and did not, with its values."""

    op: str
    left: ast.expr
    right: ast.expr
    left_value: Any
    right_value: Any


def places(error: BaseException) -> list[Place]:
    """The frames of ``error`` outside torch and this package, innermost first."""
    found = []
    step = error.__traceback__
    while step is not None:
        path = step.tb_frame.f_code.co_filename
        if not path.startswith((_TORCH + os.sep, _HERE + os.sep, "<frozen")):
            statement, around = _statement(path, step.tb_lineno)
            found.append(Place(step.tb_frame, step.tb_lineno, statement, around))
        step = step.tb_next
    return found[::-1]


def broken(place: Place) -> Iterator[Comparison]:
    """The comparisons whose failure made this statement raise.

    Those of an ``assert``, of a call like ``torch._assert(...)``, and of the ``if`` around a ``raise``.
    """
    if isinstance(place.statement, ast.Assert):
        yield from _comparisons(place, place.statement.test, wanted=True)
    elif isinstance(place.statement, ast.Expr) and isinstance(place.statement.value, ast.Call):
        call = place.statement.value
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if re.search(r"assert|check", name) and call.args:
            yield from _comparisons(place, call.args[0], wanted=True)
    elif isinstance(place.statement, ast.Raise):
        inner: ast.stmt = place.statement
        for block in place.around:
            if not isinstance(block, ast.If):
                return
            otherwise = inner in block.orelse
            yield from _comparisons(place, block.test, wanted=otherwise)
            if not otherwise:
                return
            inner = block


_OPPOSITE = {"Eq": "NotEq", "NotEq": "Eq", "Lt": "GtE", "GtE": "Lt", "Gt": "LtE", "LtE": "Gt", "In": "NotIn"}
_OPPOSITE |= {"NotIn": "In", "Is": "IsNot", "IsNot": "Is"}


def _comparisons(place: Place, test: ast.expr, *, wanted: bool) -> Iterator[Comparison]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _comparisons(place, test.operand, wanted=not wanted)
    elif isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _comparisons(place, value, wanted=wanted)
    elif isinstance(test, ast.Compare):
        left = test.left
        for operator, right in zip(test.ops, test.comparators, strict=True):
            op = type(operator).__name__
            yield Comparison(op if wanted else _OPPOSITE[op], left, right, place.evaluate(left), place.evaluate(right))
            left = right
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance" and wanted:
        kind = place.evaluate(test.args[1]) if len(test.args) == 2 else MISSING
        yield Comparison("Isinstance", test.args[0], test.args[-1], place.evaluate(test.args[0]), kind)
    elif isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod) and not wanted:
        zero = ast.Constant(0)
        yield Comparison("Eq", test, zero, place.evaluate(test), 0)


def _harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        return (isinstance(function, ast.Name) and function.id in _CALLS) or (
            isinstance(function, ast.Attribute) and function.attr in _METHODS
        )
    return not isinstance(node, (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.comprehension))


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of ``statement`` without the statements inside it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from ast.walk(child)


@functools.lru_cache(maxsize=64)
def _tree(path: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return None


@functools.lru_cache(maxsize=2048)
def _statement(path: str, line: int) -> tuple[ast.stmt | None, tuple[ast.stmt, ...]]:
    tree = _tree(path)
    chain: list[ast.stmt] = []
    inner: ast.AST | None = tree
    while inner is not None:
        inner = next(
            (child for child in _statements(inner) if child.lineno <= line <= (child.end_lineno or child.lineno)), None
        )
        if inner is not None:
            chain.append(inner)
    return (chain[-1], tuple(chain[-2::-1])) if chain else (None, ())


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from _statements(child)
