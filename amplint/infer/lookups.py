"""Parameters that are rows to look up: what a method hands to its own embedding layer holds integers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.bodies import nodes_below
from amplint.infer.values import Layer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.frame import Frame
    from amplint.infer.values import Function, Instance

_EMBEDDINGS = frozenset(("torch.nn.Embedding", "torch.nn.EmbeddingBag"))


def looked_up(frame: Frame, function: Function, receiver: Instance) -> frozenset[str]:
    """The parameters of a method that it passes, as they come, to an embedding layer of its object.

    ``torch.nn.Embedding`` takes int32 and int64 and raises for anything else.
    """
    assert not isinstance(function.node, ast.Lambda)
    spec = function.node.args
    parameters = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    found = {
        name for name, layer in _calls(function.node) if name in parameters and _is_embedding(frame, receiver, layer)
    }
    return frozenset(found - _rebound(function.node)) if found else frozenset()


def _calls(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, list[str]]]:
    """Calls ``self.a.b(name)`` with a plain name alone: the name, and the attributes that lead to what is called."""
    receiver = next((a.arg for a in (*function.args.posonlyargs, *function.args.args)), None)
    for statement in function.body:
        for node in nodes_below(statement):
            if not isinstance(node, ast.Call) or len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
                continue
            path: list[str] = []
            callee: ast.expr = node.func
            while isinstance(callee, ast.Attribute):
                path.append(callee.attr)
                callee = callee.value
            if path and isinstance(callee, ast.Name) and callee.id == receiver:
                yield node.args[0].id, path[::-1]


def _is_embedding(frame: Frame, receiver: Instance, path: list[str]) -> bool:
    value = receiver.attributes.get(path[0])
    for name in path[1:]:
        if value is None:
            return False
        value = frame.session.machine.get_attribute(frame, value, name, ast.Name(name))
    return isinstance(value, Layer) and value.name in _EMBEDDINGS


def _rebound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that the function assigns: what is looked up then may be made of the parameter."""
    nodes = (node for statement in function.body for node in nodes_below(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
