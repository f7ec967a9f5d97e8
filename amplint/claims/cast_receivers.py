"""What a cast is called on, where the inference does not know: a tensor, by how it is used, or perhaps a module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import holds_tensor
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.source import Location, Span

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import CastCall, FileFacts

_TENSOR_METHODS = frozenset(
    (
        *("t", "view", "reshape", "permute", "transpose", "contiguous", "expand", "unsqueeze", "squeeze", "flatten"),
        *("sum", "mean", "clamp", "exp", "log", "sqrt", "softmax", "sigmoid", "detach", "clone", "repeat", "argmax"),
    )
)
_OF_TENSORS = frozenset(("shape", "ndim", "is_cuda", "dim", "numel", "is_floating_point", "new_zeros", "new_ones"))
"""What only a tensor has of what can be cast."""
_ANY_OBJECT = frozenset(("torch.compile", "torch.save", "torch.load", "torch.jit.script", "torch.jit.trace"))
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


def may_be_device(around: Surroundings, node: ast.expr) -> bool:
    """Whether what ``to`` gets alone may be a device: a variable that is no dtype, and in no use of it a tensor."""
    function = around.function(node)
    if not isinstance(node, ast.Name) or function is None or around.is_dtype(node):
        return False
    spec = function.args
    annotations = (a.annotation for a in (*spec.args, *spec.kwonlyargs) if a.arg == node.id)
    if any(annotation is not None and holds_tensor(annotation) for annotation in annotations):
        return False
    uses = [other for other in nodes_of_kind(function, ast.Name) if other.id == node.id]
    return not any(_treats_as_tensor(around, use) and not _asks_about_device(around, use) for use in uses)


def _asks_about_device(around: Surroundings, use: ast.Name) -> bool:
    """``torch.device(x)``, ``torch.autocast(x)``, ``torch.cuda.synchronize(x)``."""
    parent = around.parent(use)
    name = around.torch_name(parent.func) if isinstance(parent, ast.Call) else ""
    return name in ("torch.device", "torch.autocast", "torch.amp.autocast") or name.startswith("torch.cuda.")


def _treats_as_tensor(around: Surroundings, node: ast.AST) -> bool:
    parent = around.parent(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _TENSOR_METHODS | _OF_TENSORS
    if isinstance(parent, ast.BinOp):
        return True
    if isinstance(parent, ast.Subscript):
        return parent.value is node and _is_slice(parent)
    return isinstance(parent, ast.Call) and node in parent.args and _calls_torch(around, parent)


def _is_slice(node: ast.AST) -> bool:
    """``x[..., None]``, ``x[:, 0]``: what only tensors and arrays take."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Tuple)
        and any(
            isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, Ellipsis))
            for part in node.slice.elts
        )
    )


def _calls_torch(around: Surroundings, node: ast.AST) -> bool:
    """A call of a function of torch."""
    name = around.torch_name(node.func) if isinstance(node, ast.Call) else ""
    last = name.rpartition(".")[2]
    return bool(name) and name not in _ANY_OBJECT and (not last[:1].isupper() or last.endswith("Tensor"))


def place(facts: FileFacts, node: ast.Call) -> Span:
    """Where a cast lies: the whole call, but of a chain over several lines only the method's name and arguments."""
    span = facts.span(node)
    if not isinstance(node.func, ast.Attribute):
        return span
    end = facts.span(node.func).end
    return span if end.row == span.start.row else Span(Location(end.row, end.column - len(node.func.attr)), span.end)
