"""Whether a tensor is far from zero because of what it is computed from, whatever the data."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_MAX_STEPS = 12
_EPSILONS = (2.0**-24, 1e-2)
"""What float16 holds and keeps numbers from zero: more is added to move them, below zero too."""
_CONVOLUTIONS = frozenset(("conv1d", "conv2d", "conv3d"))
_POSITIVE = frozenset(("exp", "exp2", "softmax", "ones", "ones_like"))
_SQUARES = frozenset(("square", "abs"))


def has_floor(around: Surroundings, node: ast.expr | None) -> bool:
    """Whether an epsilon that float16 holds was added before: to what is multiplied by a number of 1 or more, filtered
    with weights that are exponentials, or both.

    Numbers that an epsilon is added to twice are taken for not negative.
    """
    return node is not None and _has_floor(around, node, _MAX_STEPS)


def _has_floor(around: Surroundings, node: ast.expr, steps: int) -> bool:
    if steps == 0:
        return False
    if isinstance(node, ast.Name):
        value = around.only_value(node)
        return value is not None and _has_floor(around, value, steps - 1)
    if isinstance(node, ast.Subscript):
        return _has_floor(around, node.value, steps - 1)
    if isinstance(node, ast.Call):
        filters = around.called(node) in _CONVOLUTIONS and len(node.args) > 1
        return filters and _is_positive(around, node.args[1], steps) and _has_floor(around, node.args[0], steps - 1)
    if not isinstance(node, ast.BinOp):
        return False
    sides = ((node.left, node.right), (node.right, node.left))
    if isinstance(node.op, ast.Add):
        return any(_EPSILONS[0] <= _number(side) <= _EPSILONS[1] for side, _ in sides)
    scaled = isinstance(node.op, ast.Mult)
    return scaled and any(_number(by) >= 1 and _has_floor(around, side, steps - 1) for side, by in sides)


def _number(node: ast.expr) -> float:
    """A number that is written out, 0 for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else 0


def _is_positive(around: Surroundings, node: ast.expr, steps: int) -> bool:
    if isinstance(node, ast.Name):
        value = around.only_value(node)
        return steps > 0 and value is not None and _is_positive(around, value, steps - 1)
    if isinstance(node, ast.Subscript):
        return _is_positive(around, node.value, steps)
    return isinstance(node, ast.Call) and around.called(node) in _POSITIVE


def sums_whole(around: Surroundings, node: ast.expr | None) -> bool:
    """Whether a tensor is the sum of all squares or moduli of another, or of several: zero only where all of that is.

    ``torch.sum(x ** 2)`` and ``x.abs().sum()``, by a variable or not.
    """
    if isinstance(node, ast.Name):
        node = around.only_value(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return sums_whole(around, node.left) and sums_whole(around, node.right)
    if not isinstance(node, ast.Call) or around.called(node) != "sum":
        return False
    summed = around.subject(node)
    given = len(node.args) + len(node.keywords)
    return summed is not None and given == bool(around.torch_name(node.func)) and _is_square(around, summed)


def _is_square(around: Surroundings, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            return isinstance(node.right, ast.Constant) and node.right.value == 2
        return isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right)
    if isinstance(node, ast.Call):
        by = node.args[-1] if around.called(node) == "pow" and node.args else None
        return around.called(node) in _SQUARES or (isinstance(by, ast.Constant) and by.value == 2)
    return False
