"""What einops and einx make of tensors, by patterns that name their axes."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import UNKNOWN, Const, Tensor, Value
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.operations import apply_named

if TYPE_CHECKING:
    import ast

    from amplint.infer.state.frame import Frame

_ELEMENTWISE = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "true_divide", "equal", "less", "greater"), 2),
    **dict.fromkeys(("less_equal", "greater_equal", "not_equal", "logical_and", "logical_or"), 2),
    **dict.fromkeys(("maximum", "minimum"), 2),
    "where": 3,
}
"""Functions of einx that call torch's of that name on so many tensors, behind the expression that shapes them."""


def reshaped(value: Value) -> Value:
    """A tensor after its shape was changed; what is no tensor is unknown."""
    for option in options_of(value):
        if isinstance(option, Tensor):
            return replace(option, dim=None, leaf=False, optional=False, trait=None, unsure=False)
    return UNKNOWN


def leaves_dimensions(arguments: Arguments) -> bool:
    """Whether a pattern of einops names dimensions of the result: ``b n -> b``, not ``b n ->``."""
    pattern = arguments.positional[1] if len(arguments.positional) > 1 else arguments.keywords.get("pattern")
    text = pattern.value if isinstance(pattern, Const) else None
    return isinstance(text, str) and bool(text.partition("->")[2].strip())


def einsum(frame: Frame, arguments: Arguments, node: ast.expr) -> Value:
    """``einops.einsum``: torch's, with the operands first, and axes whose names are words."""
    *operands, equation = arguments.positional
    if isinstance(equation, Const) and isinstance(equation.value, str):
        equation = Const(in_letters(equation.value))
    nodes: dict[int | str, ast.expr] = {
        index + 1: written
        for index, written in arguments.nodes.items()
        if isinstance(index, int) and index < len(operands)
    }
    return apply_named(frame, "torch.einsum", Arguments([equation, *operands], {}, nodes), node)


def in_letters(equation: str) -> str:
    """An equation whose axes are words between spaces (``b d_in, d_in -> b``), as torch wants it: ``ab,b->a``."""
    words = equation.replace(",", " , ").replace("->", " -> ").split()
    axes = dict.fromkeys(word for word in words if word not in (",", "->", "..."))
    letters = dict(zip(axes, string.ascii_letters, strict=False))
    return "".join(letters.get(word, word) for word in words)


def einx(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """A function of einx: the first argument says how the tensors behind it are laid out."""
    tensors = arguments.positional[1:]
    if name == "get_at" and tensors:
        return reshaped(tensors[0])
    if len(tensors) != _ELEMENTWISE.get(name):
        return UNKNOWN
    nodes: dict[int | str, ast.expr] = {
        index - 1: written for index, written in arguments.nodes.items() if isinstance(index, int) and index
    }
    return apply_named(frame, f"torch.{name}", Arguments(tensors, {}, nodes), node)
