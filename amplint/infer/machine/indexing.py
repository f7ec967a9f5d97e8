"""Which parameters a function uses as indices: torch indexes with integers and booleans alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import TorchName
from amplint.infer.state.dispatch import evaluate
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from amplint.infer.names.definitions import Function
    from amplint.infer.state.frame import Frame

_METHODS = {
    **dict.fromkeys(("gather", "index_select", "index_add", "index_add_", "index_copy", "index_copy_"), 1),
    **dict.fromkeys(("index_fill", "index_fill_", "scatter", "scatter_", "scatter_add", "scatter_add_"), 1),
    **dict.fromkeys(("index_reduce", "index_reduce_", "scatter_reduce", "scatter_reduce_"), 1),
    **dict.fromkeys(("index_put", "index_put_", "take", "take_along_dim"), 0),
}
"""At which place methods of tensors take the index; functions take it one further on, after the tensor."""
_FUNCTIONS = {**{name: place + 1 for name, place in _METHODS.items()}, "embedding": 0, "embedding_bag": 0, "one_hot": 0}
_KEYWORDS = ("index", "indices")


def indexing(frame: Frame, function: Function) -> frozenset[str]:
    """The variables of a function that it indexes with and does not bind anew; ``frame`` is the one around it."""
    known = frame.session.indexing
    found = known.get(function.node)
    if found is None:
        found = known[function.node] = _indexing(frame, function.node)
    return found


def _indexing(frame: Frame, function: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    bound: set[str] = set()
    for node in nodes_below(function):
        if isinstance(node, ast.Subscript):
            found.update(_names(node.slice))
        elif isinstance(node, ast.Call):
            found.update(_passed(frame, node))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
    return frozenset(found - bound)


def _passed(frame: Frame, call: ast.Call) -> list[str]:
    """The variables that a call takes as an index, by place or by keyword."""
    name = _called(frame, call.func)
    if name not in _FUNCTIONS:
        return []
    of_torch = _is_dotted(call.func) and isinstance(evaluate(frame, call.func), TorchName)
    place = (_FUNCTIONS if of_torch else _METHODS).get(name)
    if place is None:
        return []
    given = call.args[place : place + 1] + [keyword.value for keyword in call.keywords if keyword.arg in _KEYWORDS]
    return [name for value in given for name in _names(value)]


def _called(frame: Frame, callee: ast.expr) -> str:
    """The last part of the name of what is called, as it is called where it is imported from."""
    if isinstance(callee, ast.Attribute):
        return callee.attr
    if not isinstance(callee, ast.Name):
        return ""
    imports = (found.name for found in frame.namespace.bindings.get(callee.id, ()) if isinstance(found, ast.alias))
    return next(imports, callee.id)


def _names(index: ast.expr) -> list[str]:
    parts = index.elts if isinstance(index, (ast.Tuple, ast.List)) else [index]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
