"""Which parameters a function uses as indices: torch indexes with integers and booleans alone."""

from __future__ import annotations

import ast

from amplint.infer.bodies import nodes_below, once_for_each_node

_PLACES = {
    **dict.fromkeys(("gather", "index_select", "index_add", "index_add_", "index_copy", "index_copy_"), (1, 2)),
    **dict.fromkeys(("index_fill", "index_fill_", "scatter", "scatter_", "scatter_add", "scatter_add_"), (1, 2)),
    **dict.fromkeys(("embedding", "embedding_bag", "one_hot"), (0, 0)),
    "take_along_dim": (0, 1),
}
"""At which places operations take the index, as methods and as functions."""


@once_for_each_node
def indexing(function: ast.AST) -> frozenset[str]:
    """The variables of a function that it indexes with and does not bind anew."""
    found: set[str] = set()
    bound: set[str] = set()
    for node in nodes_below(function):
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found.update(part.id for part in parts if isinstance(part, ast.Name))
        elif isinstance(node, ast.Call):
            found.update(_passed(node))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
    return frozenset(found - bound)


def _passed(call: ast.Call) -> list[str]:
    """The variables that a call takes as an index, by place or by name."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [call.args[place] for place in set(_PLACES.get(name, ())) if place < len(call.args)]
    given += [keyword.value for keyword in call.keywords if name in _PLACES and keyword.arg == "index"]
    return [value.id for value in given if isinstance(value, ast.Name)]
