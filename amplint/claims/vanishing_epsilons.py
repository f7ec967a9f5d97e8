"""Epsilons that float16 does not bear: they are zero there, or the gradient beside them is infinite."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from amplint.claims.low_precision import by_node, claimed_lanes, surest
from amplint.claims.operands import short_name
from amplint.claims.surroundings import Surroundings
from amplint.infer.lattice.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from amplint.infer.lattice.values import Limit, Trait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Operand, Use
    from amplint.judge.certainty import Standing

_ROUNDS_TO_ZERO = 2.0**-25
"""float16's smallest number is 2**-24: half of it and less is rounded to zero."""
_FINITE_CUBE = 65504.0 ** (-2 / 3)
"""The gradient of ``rsqrt`` is a multiple of its cube, which float16 holds up to 65504."""
_GUARDS = {
    "add": ("other", "input"),
    "clamp": ("min",),
    "clip": ("min",),
    "clamp_min": ("min",),
    "normalize": ("eps",),
    "cosine_similarity": ("eps",),
    "logit": ("eps",),
}
"""By which parameter operations get an epsilon."""
_VANISHING = ("tiny", "smallest_normal", "smallest_subnormal")
_WIDE = BFLOAT16 | FLOAT32 | FLOAT64


@dataclass(frozen=True, slots=True)
class Vanishing:
    """An epsilon that float16 does not bear: the use, the parameter it is passed by, and the scenarios.

    ``cubed``: it is not zero, but the gradient of the inverse square root that it bounds is infinite.
    """

    use: Use
    parameter: str
    lanes: dict[int, Standing]
    cubed: bool = False

    @property
    def operand(self) -> Operand:
        return self.use.operands[0]

    @property
    def constant(self) -> ast.expr | None:
        """The expression of the epsilon."""
        return self.use.nodes.get(self.parameter)


def _vanishing(facts: FileFacts, use: Use) -> Vanishing | None:
    for parameter in _GUARDS.get(short_name(use.op).rstrip("_"), ()):
        number = use.numbers.get(parameter)
        if number is None or not use.operands or _is_learned(use.operands[0]):
            continue
        lanes = claimed_lanes(facts, use, use.operands[0], partial(_vanishes, number))
        if lanes:
            return Vanishing(use, parameter, surest(lanes))
    return None


def _is_learned(operand: Operand) -> bool:
    """Whether a tensor is computed from parameters of modules alone: no data makes it zero."""
    pending = [operand.value.origin]
    while pending:
        origin = pending.pop()
        if origin is None or not (origin.parents or origin.parameter):
            return False
        pending += () if origin.parameter else origin.parents
    return True


def _cubed(facts: FileFacts, use: Use) -> Vanishing | None:
    """A sum whose inverse square root, cubed, float16 does not hold where the tensor is zero, which it may be.

    Autocast computes the root and its gradient in float32.
    """
    if short_name(use.op) != "add" or not use.operands or use.operands[0].value.trait is not Trait.POSITIVE:
        return None
    for parameter in _GUARDS["add"]:
        number = use.numbers.get(parameter)
        if isinstance(number, float) and 0 < number < _FINITE_CUBE:
            lanes = claimed_lanes(facts, use, use.operands[0], lambda _, bit: bit == FLOAT16)
            lanes = {n: standing for n, standing in lanes.items() if facts.scenarios[n].autocast is None}
            return Vanishing(use, parameter, surest(lanes), cubed=True) if lanes else None
    return None


def _is_inverse_root(surroundings: Surroundings, node: ast.expr | ast.stmt) -> bool:
    """Whether a sum is the operand of ``rsqrt`` or of a power of -0.5."""
    parent = surroundings.parent(node)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Pow) and parent.left is node and _is_minus_half(parent.right)
    if isinstance(parent, ast.Attribute):
        call = surroundings.parent(parent)
        if parent.attr == "pow" and isinstance(call, ast.Call) and call.args:
            return _is_minus_half(call.args[0])
        return parent.attr == "rsqrt"
    if isinstance(parent, ast.Call) and node in parent.args:
        name = surroundings.called(parent)
        return name == "rsqrt" or (name == "pow" and len(parent.args) > 1 and _is_minus_half(parent.args[1]))
    return False


def _is_minus_half(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant) and node.operand.value == 0.5


def _vanishes(number: float | Limit, lane: int, bit: int) -> bool:
    """Whether a dtype is float16, and rounds a positive number to zero."""
    if bit != FLOAT16:
        return False
    if not isinstance(number, Limit):
        return 0 < number <= _ROUNDS_TO_ZERO
    of = number.dtypes[lane]
    wide = of.known and not of.mask & ~_WIDE
    return wide and number.name in _VANISHING and not number.negated


def vanishing_epsilons(facts: FileFacts) -> Iterator[list[Vanishing]]:
    """The epsilons of each operation that float16 does not bear."""
    if not any(use.numbers for use in facts.uses):
        return
    surroundings = Surroundings.of(facts.source.tree)
    for uses in by_node(facts.uses):
        found = [vanishing for use in uses if (vanishing := _vanishing(facts, use)) is not None]
        if not found and _is_inverse_root(surroundings, uses[0].node):
            found = [cubed for use in uses if (cubed := _cubed(facts, use)) is not None]
        if found:
            yield found
