"""The expression where the inference first goes astray, for a row that is not exact.

From the row down to its first operand that already has the same verdict, and from a name to what it was bound to, in
the same function. Rows with the same root are likely to have one cause.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.source import Source
    from dtype_truth.compare import Inferred
    from dtype_truth.truth import Position

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, order=True, slots=True)
class Root:
    """Where it begins. ``kind``: parameter (and of which function), name, attribute, or expression."""

    position: Position
    kind: str


class Roots:
    """Finds roots in one file for rows whose verdict is ``wanted``.

    ``verdicts`` are those of the recorded rows of one run, ``inferred`` what was inferred in it, both by position.
    """

    def __init__(
        self, source: Source, inferred: dict[Position, Inferred], verdicts: dict[Position, str], wanted: str
    ) -> None:
        self._source = source
        self._inferred = inferred
        self._verdicts = verdicts
        self._wanted = wanted
        self._scopes: dict[int, _Scope] = {}
        self._bound: dict[tuple[int, str], list[tuple[ast.expr | ast.stmt, ast.expr | None]]] = defaultdict(list)
        self._nodes: dict[Position, ast.expr | ast.stmt] = {}
        self._enter(source.tree, source.tree)

    def of(self, position: Position) -> Root:
        """The root of the recorded row at a position."""
        return self._deepest(self._nodes[position], frozenset())

    def _deepest(self, node: ast.expr | ast.stmt, seen: frozenset[int], *, called: bool = False) -> Root:
        seen |= {id(node)}
        for operand in _operands(node):
            if id(operand) not in seen and self._astray(operand, seen):
                if isinstance(node, ast.Attribute) and not called and self._parameter(operand):
                    return Root(self._position(node), "attribute")
                is_callee = isinstance(node, ast.Call) and operand is node.func
                return self._deepest(operand, seen, called=is_callee)
        if isinstance(node, ast.Name):
            function = self._parameter(node)
            if function:
                return Root(self._position(node), f"parameter of {function}")
            found = self._binding(node)
            if isinstance(found, ast.expr) and id(found) not in seen and self._astray(found, seen):
                return self._deepest(found, seen)
            return Root(self._position(node), "name")
        return Root(self._position(node), "attribute" if isinstance(node, ast.Attribute) else "expression")

    def _parameter(self, node: ast.expr) -> str:
        """The name of the function whose parameter a name reads; empty for anything else."""
        if not isinstance(node, ast.Name) or self._binding(node) != "parameter":
            return ""
        return getattr(self._scopes[id(node)], "name", "lambda")

    def _astray(self, node: ast.expr | ast.stmt, seen: frozenset[int]) -> bool:
        position = self._position(node)
        known = self._verdicts.get(position)
        if known is not None:
            return known == self._wanted
        row = self._inferred.get(position)
        if row is not None and self._wanted == "unknown":
            return not row.dtypes
        if row is not None and self._wanted == "partial":
            return len(row.dtypes or ()) > 1
        seen |= {id(node)}
        if isinstance(node, ast.Name):
            found = self._binding(node)
            return isinstance(found, ast.expr) and id(found) not in seen and self._astray(found, seen)
        if isinstance(node, (ast.Call, ast.Compare, ast.Lambda)):
            return False
        return any(self._astray(operand, seen) for operand in _operands(node) if id(operand) not in seen)

    def _binding(self, name: ast.Name) -> ast.expr | str | None:
        """What the name was bound to last before it is read, else after it, as in a loop; "parameter" for those."""
        scope = self._scopes[id(name)]
        bound = self._bound.get((id(scope), name.id), [])
        here = (name.lineno, name.col_offset)
        before = [value for node, value in bound if (node.end_lineno or 0, node.end_col_offset or 0) <= here]
        if before:
            return before[-1]
        if isinstance(scope, _FUNCTIONS) and name.id in _parameters(scope):
            return "parameter"
        return bound[-1][1] if bound else None

    def _enter(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            scope = node
        for child in ast.iter_child_nodes(node):
            self._scopes[id(child)] = scope
            if isinstance(child, (ast.expr, ast.AugAssign)):
                self._nodes.setdefault(self._position(child), child)
            for target, value in _bindings(child):
                statement = child if isinstance(child, (ast.expr, ast.stmt)) else target
                self._bound[id(scope), target.id].append((statement, value))
            self._enter(child, scope)

    def _position(self, node: ast.expr | ast.stmt) -> Position:
        span = self._source.span(node)
        return span.start.row, span.start.column, span.end.row, span.end.column


def _operands(node: ast.expr | ast.stmt) -> Iterator[ast.expr]:
    """The expressions that the value is made of, in the order in which they are evaluated."""
    if isinstance(node, ast.AugAssign):
        yield node.target
        yield node.value
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword):
            yield child.value
        elif isinstance(child, ast.comprehension):
            yield child.iter


def _bindings(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    """Names that a statement or walrus binds, with the expression that each gets or comes out of."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
        yield from _unpacked(node.target, node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield from _unpacked(node.target, node.iter)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _unpacked(node.optional_vars, node.context_expr)


def _unpacked(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Name, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, ast.Starred):
        yield from _unpacked(target.value, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        for index, item in enumerate(target.elts):
            yield from _unpacked(
                item, value.elts[index] if same and isinstance(value, (ast.Tuple, ast.List)) else value
            )


def _parameters(function: _Scope) -> set[str]:
    assert isinstance(function, _FUNCTIONS)
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {argument.arg for argument in every if argument is not None}
