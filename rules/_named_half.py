"""Where source names float16 or bfloat16 for a tensor: casts, and tensors made in that dtype."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._surroundings import Surroundings

_NAMED = {"float16": "float16", "half": "float16", "HalfTensor": "float16"}
_NAMED |= {"bfloat16": "bfloat16", "BFloat16Tensor": "bfloat16"}
_METHODS = {"half": "float16", "bfloat16": "bfloat16"}
_CASTS = ("to", "type")
_NO_FLOATS = frozenset(("uint8", "int8", "int16", "int32", "int64", "long", "int", "short", "bool", "uint16", "uint32"))
_KERNEL_LANGUAGES = frozenset(("triton", "cutlass", "cuda", "numba", "tilelang", "helion"))
_REGISTERS = ("Parameter", "Buffer", "register_buffer", "UninitializedParameter")
_MAKERS = frozenset(("empty", "zeros", "ones", "full", "rand", "randn"))
_LIKE = frozenset(f"{maker}_like" for maker in _MAKERS)
_NEW = frozenset(("new_empty", "new_zeros", "new_ones", "new_full"))


@dataclass(frozen=True, slots=True)
class NamedHalf:
    """A call that gives a tensor, or a module, the 16-bit ``dtype`` that the source names.

    ``receiver`` is what is cast; None where a tensor is made. ``choice`` is the expression that chose the dtype where
    the other outcomes of it are integers.
    """

    node: ast.Call
    dtype: str
    receiver: ast.expr | None
    choice: ast.IfExp | None = None


def named_halves(tree: ast.Module, around: Surroundings) -> Iterator[NamedHalf]:
    """Every cast to, and every tensor made in, a 16-bit dtype that the source names, in the order of the tree.

    Where kernels are written, their outputs have the dtype that the kernels write: those are left out.
    """
    kernels = _writes_kernels(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found = _cast(node, node.func, around)
            if found is None and not kernels:
                found = _made(node, node.func, around)
            if found is not None:
                yield found


def _cast(node: ast.Call, function: ast.Attribute, around: Surroundings) -> NamedHalf | None:
    if function.attr in _METHODS and not node.args:
        return NamedHalf(node, _METHODS[function.attr], function.value)
    if function.attr not in _CASTS:
        return None
    for value in [*node.args[:2], *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]:
        dtype, choice = _dtype(value, around)
        if dtype is not None:
            return NamedHalf(node, dtype, function.value, choice)
    return None


def _made(node: ast.Call, function: ast.Attribute, around: Surroundings) -> NamedHalf | None:
    """A tensor made in a named dtype; none in a shape that is spelled out, as of samples, and none that a module
    registers, which is filled when its state is loaded."""
    parent = around.parent(node)
    if isinstance(parent, ast.Call) and getattr(parent.func, "attr", getattr(parent.func, "id", "")) in _REGISTERS:
        return None
    of_torch = isinstance(function.value, ast.Name) and function.value.id == "torch"
    if not ((of_torch and function.attr in _MAKERS | _LIKE) or function.attr in _NEW):
        return None
    shape = node.args if function.attr not in ("full", "new_full") else node.args[:1]
    if function.attr not in _LIKE and all(_is_constant(value) for value in shape):
        return None
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            dtype, choice = _dtype(keyword.value, around)
            return NamedHalf(node, dtype, None, choice) if dtype is not None else None
    return None


def _writes_kernels(tree: ast.Module) -> bool:
    """Whether a file imports a language for kernels, or registers operations of its own."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if any(name.split(".")[0] in _KERNEL_LANGUAGES or name == "torch.library" for name in names):
            return True
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name.endswith(("custom_op", "register_fake", "register_kernel")):
            return True
    return False


def _is_constant(node: ast.expr) -> bool:
    return all(
        isinstance(part, (ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.expr_context, ast.unaryop))
        for part in ast.walk(node)
    )


def _dtype(node: ast.expr, around: Surroundings) -> tuple[str | None, ast.IfExp | None]:
    """The 16-bit dtype that an expression names, itself or through a variable that is assigned once."""
    if isinstance(node, ast.Name):
        value = around.only_value(node)
        if value is None or isinstance(value, ast.Name):
            return None, None
        return _dtype(value, around)
    if isinstance(node, ast.Attribute):
        return _NAMED.get(node.attr) if _is_torch(node.value) else None, None
    if isinstance(node, ast.IfExp):
        arms = [arm for arm in (node.body, node.orelse) if not is_integral(arm)]
        if len(arms) == 1:
            return _dtype(arms[0], around)[0], node
    return None, None


def is_integral(node: ast.expr) -> bool:
    """Whether an expression names an integer or boolean dtype of torch."""
    return isinstance(node, ast.Attribute) and _is_torch(node.value) and node.attr in _NO_FLOATS


def _is_torch(node: ast.expr) -> bool:
    """``torch``, ``torch.cuda``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "torch"
