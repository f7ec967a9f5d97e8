"""Parameters that are rows to look up: what a method hands to its own embedding layer holds integers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import Layer
from amplint.infer.state.dispatch import get_attribute
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from amplint.infer.names.definitions import Function, Instance
    from amplint.infer.state.frame import Frame

_EMBEDDINGS = frozenset(("torch.nn.Embedding", "torch.nn.EmbeddingBag"))


def looked_up(frame: Frame, function: Function, receiver: Instance) -> frozenset[str]:
    """The parameters of a method that it passes, as they come, to an embedding layer of its object.

    ``torch.nn.Embedding`` takes int32 and int64 and raises for anything else.
    """
    assert not isinstance(function.node, ast.Lambda)
    handed = function.namespace.body(function.node).handed
    found = {name for name, layer in handed if _is_embedding(frame, receiver, layer)}
    return frozenset(found - _rebound(function.node)) if found else frozenset()


def _is_embedding(frame: Frame, receiver: Instance, path: tuple[str, ...]) -> bool:
    value = receiver.attributes.get(path[0])
    for name in path[1:]:
        if value is None:
            return False
        value = get_attribute(frame, value, name, ast.Name(name))
    return isinstance(value, Layer) and value.name in _EMBEDDINGS


def _rebound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that the function assigns: what is looked up then may be made of the parameter."""
    nodes = (node for statement in function.body for node in nodes_below(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
