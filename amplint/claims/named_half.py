"""Where source names float16 or bfloat16 for a tensor: casts, and tensors made in that dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.packages import package_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import FileFacts

_NAMED = {"float16": "float16", "half": "float16", "HalfTensor": "float16"}
_NAMED |= {"bfloat16": "bfloat16", "BFloat16Tensor": "bfloat16"}
_METHODS = {"half": "float16", "bfloat16": "bfloat16"}
_CASTS = ("to", "type")
_KERNEL_LANGUAGES = frozenset(("triton", "cutlass", "cuda", "numba", "tilelang", "helion"))
_REGISTERS = ("Parameter", "Buffer", "register_buffer", "UninitializedParameter")
_MAKERS = frozenset(("empty", "zeros", "ones", "full", "rand", "randn"))
_LIKE = frozenset(f"{maker}_like" for maker in _MAKERS)
_NEW = frozenset(("new_empty", "new_zeros", "new_ones", "new_full"))


@dataclass(frozen=True, slots=True)
class NamedHalf:
    """A call that gives a tensor, or a module, the 16-bit ``dtype`` that the source names.

    ``receiver`` is what is cast; None where a tensor is made.
    """

    node: ast.Call
    dtype: str
    receiver: ast.expr | None


def named_halves(facts: FileFacts, around: Surroundings) -> Iterator[NamedHalf]:
    """Every cast to, and every tensor made in, a 16-bit dtype that the source names, in the order of the tree.

    Where kernels are written, their outputs have the dtype that the kernels write: those are left out.
    """
    kernels = _writes_kernels(facts)
    names = _Names({id(reference.node): reference.name for reference in facts.references}, around)
    for node in nodes_of_kind(facts.source.tree, ast.Call):
        found = _cast(node, names)
        if found is None and not kernels:
            found = _made(node, names)
        if found is not None:
            yield found


def _cast(node: ast.Call, names: _Names) -> NamedHalf | None:
    function = node.func
    if not isinstance(function, ast.Attribute):
        return None
    if function.attr in _METHODS and not node.args:
        return NamedHalf(node, _METHODS[function.attr], function.value)
    if function.attr not in _CASTS:
        return None
    for value in [*node.args[:2], *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]:
        dtype = names.dtype(value)
        if dtype is not None:
            return NamedHalf(node, dtype, function.value)
    return None


def _made(node: ast.Call, names: _Names) -> NamedHalf | None:
    """A tensor made in a named dtype; none in a shape that is spelled out, as of samples, and none that a module
    registers, which is filled when its state is loaded."""
    parent = names.around.parent(node)
    if isinstance(parent, ast.Call) and getattr(parent.func, "attr", getattr(parent.func, "id", "")) in _REGISTERS:
        return None
    method = node.func.attr if isinstance(node.func, ast.Attribute) else None
    maker = method if method in _NEW else names.of_torch(node.func)
    if maker not in _MAKERS | _LIKE | _NEW:
        return None
    shape = node.args if maker not in ("full", "new_full") else node.args[:1]
    if maker not in _LIKE and all(_is_constant(value) for value in shape):
        return None
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            dtype = names.dtype(keyword.value)
            return NamedHalf(node, dtype, None) if dtype is not None else None
    return None


def _writes_kernels(facts: FileFacts) -> bool:
    """Whether a file imports a language for kernels, or registers operations of its own."""
    imports = nodes_of_kind(facts.source.tree, ast.Import, ast.ImportFrom)
    if any(package_of(alias, node) in _KERNEL_LANGUAGES for node in imports for alias in node.names):
        return True
    return any(reference.name.startswith("torch.library") for reference in facts.references)


def _is_constant(node: ast.expr) -> bool:
    return all(
        isinstance(part, (ast.Constant, ast.Tuple, ast.List, ast.UnaryOp, ast.expr_context, ast.unaryop))
        for part in ast.walk(node)
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """What the expressions of a file name in torch, by whatever import: ``names`` by ``id`` of the expression."""

    names: dict[int, str]
    around: Surroundings

    def of_torch(self, node: ast.expr) -> str | None:
        """``zeros`` for ``torch.zeros``."""
        name = self.names.get(id(node), "")
        return name.removeprefix("torch.") if name.startswith("torch.") else None

    def dtype(self, node: ast.expr) -> str | None:
        """The 16-bit dtype that an expression names, itself or through a variable that is assigned once."""
        value = self.around.only_value(node) if isinstance(node, ast.Name) and self._last(node) is None else node
        return _NAMED.get(self._last(value) or "") if value is not None else None

    def _last(self, node: ast.expr) -> str | None:
        """``HalfTensor`` for ``torch.cuda.HalfTensor``."""
        name = self.of_torch(node)
        return name.rpartition(".")[2] if name is not None else None
