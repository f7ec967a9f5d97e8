"""What a cast is called on, where the inference does not know: a tensor, by how it is used, or perhaps a module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.source import Location, Span

if TYPE_CHECKING:
    from amplint.infer.facts import CastCall, FileFacts

_TENSOR_METHODS = frozenset(
    (
        *("t", "view", "reshape", "permute", "transpose", "contiguous", "expand", "unsqueeze", "squeeze", "flatten"),
        *("sum", "mean", "clamp", "exp", "log", "sqrt", "softmax", "sigmoid", "detach", "clone", "repeat", "argmax"),
    )
)
_OF_MODULES = frozenset(("requires_grad_", "apply_"))


def is_tensor(cast: CastCall) -> bool:
    """Whether what is cast is a tensor: the inference knows it as one, or a method of tensors or arithmetic made it."""
    if not cast.tensor.maybe:
        return True
    assert isinstance(cast.node.func, ast.Attribute)
    node = cast.node.func.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        in_place = name.endswith("_") and not name.startswith("_") and name not in _OF_MODULES
        return in_place or name in _TENSOR_METHODS
    return isinstance(node, ast.BinOp)


def place(facts: FileFacts, node: ast.Call) -> Span:
    """Where a cast lies: the whole call, but of a chain over several lines only the method's name and arguments."""
    span = facts.span(node)
    if not isinstance(node.func, ast.Attribute):
        return span
    end = facts.span(node.func).end
    return span if end.row == span.start.row else Span(Location(end.row, end.column - len(node.func.attr)), span.end)
