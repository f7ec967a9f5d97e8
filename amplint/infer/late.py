"""Which variables a function inside another one may find changed since it was defined."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.bodies import nodes_below, once_for_each_node

if TYPE_CHECKING:
    from amplint.infer.frame import Frame
    from amplint.infer.values import FunctionNode

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


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
        if isinstance(node, _FUNCTIONS):
            for inner in nodes_below(node):
                if isinstance(inner, ast.Nonlocal):
                    rows.update(dict.fromkeys(inner.names, end))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            rows[node.name] = max(rows.get(node.name, 0), row or node.lineno)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, _LOOPS):
            row = row or node.end_lineno or node.lineno
        names = [getattr(node, "name", None), getattr(node, "rest", None)] if not isinstance(node, ast.alias) else []
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.append(node.id)
        for name in names:
            if isinstance(name, str):
                rows[name] = max(rows.get(name, 0), row or getattr(node, "lineno", 0))
        pending.extend((child, row) for child in ast.iter_child_nodes(node))
    return rows


@once_for_each_node
def bound_inside(around: FunctionNode) -> frozenset[str]:
    """The variables of a function that functions inside it bind."""
    return frozenset(name for node in nodes_below(around) if isinstance(node, ast.Nonlocal) for name in node.names)


@once_for_each_node
def _read(function: FunctionNode) -> frozenset[str]:
    names = {node.id for node in nodes_below(function) if isinstance(node, ast.Name)}
    shared = (node.names for node in nodes_below(function) if isinstance(node, ast.Nonlocal))
    return frozenset(names.union(*shared))


def changing(around: Frame, function: FunctionNode) -> frozenset[str]:
    """Names that a function mentions and the one around it, or one further out, binds behind its definition, or again
    in a loop."""
    mentioned = _read(function)
    own = function.name if not isinstance(function, ast.Lambda) else ""
    rows = _bound(around.definition) if around.definition is not None else {}
    behind = {name for name in mentioned if rows.get(name, 0) > function.lineno}
    return frozenset((behind | mentioned & around.late) - {own})
