"""Which variables a function inside another one may find changed since it was defined."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import children, nodes_below, nodes_inside, once_for_each_node

if TYPE_CHECKING:
    from amplint.infer.syntax.bodies import FunctionNode

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_NAMING = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping)


@once_for_each_node
def _bound(function: FunctionNode) -> dict[str, int]:
    """The variables that a function binds, with the last row on which it does: the end of a loop for those bound in
    one, and the function's own for what functions inside it bind."""
    rows: dict[str, int] = {}
    if isinstance(function, ast.Lambda):
        return rows
    end = function.end_lineno or function.lineno
    pending: list[tuple[ast.AST, int]] = [(statement, 0) for statement in function.body]
    while pending:
        node, row = pending.pop()
        if type(node) is ast.Name:
            if not isinstance(node.ctx, ast.Load):
                rows[node.id] = max(rows.get(node.id, 0), row or node.lineno)
            continue
        if isinstance(node, _FUNCTIONS):
            for inner in nodes_below(node):
                if type(inner) is ast.Nonlocal:
                    rows.update(dict.fromkeys(inner.names, end))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            rows[node.name] = max(rows.get(node.name, 0), row or node.lineno)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, _LOOPS):
            row = row or node.end_lineno or node.lineno
        if isinstance(node, _NAMING):
            name = node.rest if isinstance(node, ast.MatchMapping) else node.name
            if name is not None:
                rows[name] = max(rows.get(name, 0), row or node.lineno)
        pending.extend([(child, row) for child in children(node)])
    return rows


@once_for_each_node
def bound_inside(around: FunctionNode) -> frozenset[str]:
    """The variables of a function that functions inside it bind."""
    return frozenset([name for node in nodes_inside(around) if type(node) is ast.Nonlocal for name in node.names])


@once_for_each_node
def _read(function: FunctionNode) -> frozenset[str]:
    names: set[str] = set()
    for node in nodes_inside(function):
        if type(node) is ast.Name:
            names.add(node.id)
        elif type(node) is ast.Nonlocal:
            names.update(node.names)
    return frozenset(names)


def changing(around: FunctionNode, further_out: frozenset[str], function: FunctionNode) -> frozenset[str]:
    """Names that a function mentions and the one around it binds behind its definition, or again in a loop, or that are
    such of those ``further_out``."""
    mentioned = _read(function)
    own = function.name if not isinstance(function, ast.Lambda) else ""
    rows = _bound(around)
    behind = {name for name in mentioned if rows.get(name, 0) > function.lineno}
    return frozenset((behind | mentioned & further_out) - {own})
