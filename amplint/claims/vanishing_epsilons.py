"""Epsilons that float16 does not bear: they are zero there, or the gradient beside them is infinite."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from amplint.claims.away_from_zero import has_floor, sums_whole
from amplint.claims.complex_parts import is_modulus
from amplint.claims.idle_epsilons import guards_gradients_alone, idle_doubts, is_of_trainer, is_overridden, sums_shares
from amplint.claims.learned import is_learned
from amplint.claims.low_precision import by_node, claimed_lanes, doubted, refused_above, surest
from amplint.claims.on_host import is_on_host
from amplint.claims.operands import short_name
from amplint.claims.surroundings import Surroundings
from amplint.infer.lattice.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from amplint.infer.lattice.values import Limit, Trait
from amplint.judge import doubts
from amplint.judge.certainty import holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.finding import Doubt
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
_USUAL = {"normalize": 1e-12, "cosine_similarity": 1e-8}
"""The epsilons that torch takes where none is passed (torch/nn/functional.py)."""
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
        if number is None or not use.operands:
            continue
        lanes = claimed_lanes(facts, use, use.operands[0], partial(_vanishes, number))
        if lanes:
            return Vanishing(use, parameter, surest(lanes))
    return None


def _is_dropped(vanishing: Vanishing) -> bool:
    return all(standing.certainty is None for standing in vanishing.lanes.values())


def _judged(facts: FileFacts, surroundings: Surroundings, vanishing: Vanishing) -> Vanishing:
    held = tuple(_doubts(facts, surroundings, vanishing))
    return replace(vanishing, lanes=doubted(vanishing.lanes, *held))


def _doubts(facts: FileFacts, surroundings: Surroundings, vanishing: Vanishing) -> Iterator[Doubt]:
    """Why no zero may come there, or none that matters."""
    tree, use, operand = facts.source.tree, vanishing.use, vanishing.operand.node
    lowered = [facts.scenarios[number].autocast is not None for number in vanishing.lanes]
    proven = any(standing.proven for standing in vanishing.lanes.values())
    yield from holding(
        {
            doubts.NO_GUARD: _is_no_guard(surroundings, use.node),
            doubts.SHARES_SUMMED: sums_shares(surroundings, operand),
            doubts.OVERRIDDEN: is_overridden(tree, surroundings, vanishing.constant),
        }
    )
    yield from idle_doubts(tree, surroundings, use.node, operand)
    if is_learned(tree, surroundings, operand):
        yield doubts.LEARNED
    if has_floor(surroundings, operand):
        yield doubts.FLOOR_BEFORE
    if sums_whole(surroundings, operand):
        yield doubts.SUMS_WHOLE
    if not any(lowered) and guards_gradients_alone(tree, surroundings, use.node):
        yield doubts.GRADIENT_ALONE
    if not any(lowered) and is_of_trainer(surroundings, use.node):
        yield doubts.TRAINER
    if not proven and is_modulus(surroundings, operand):
        yield doubts.OF_COMPLEX
    if all(lowered) and facts.device != "cpu" and _is_usually_on_host(surroundings, vanishing):
        yield doubts.HOST_BY_DEFAULT
    if use.numbers[vanishing.parameter] == _USUAL.get(short_name(use.op)):
        yield doubts.TORCHS_OWN
    if refused_above(facts, surroundings, use.node) >= vanishing.lanes.keys():
        yield doubts.CONSTANT_RAISES


def _is_usually_on_host(surroundings: Surroundings, vanishing: Vanishing) -> bool:
    """Whether the tensor lies where another device's autocast does not act, unless a caller names a device."""
    function = surroundings.function(vanishing.use.node)
    return is_on_host(surroundings, function, vanishing.operand.node, by_default=True)


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


def _is_no_guard(surroundings: Surroundings, node: ast.expr | ast.stmt) -> bool:
    """Whether a sum is multiplied (a coefficient), or chosen by ``torch.where`` only where it is not zero."""
    parent = surroundings.parent(node)
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(parent, ast.Call):
        return surroundings.called(parent) == "where"
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult)


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
        found = [_judged(facts, surroundings, one) for one in found]
        if all(map(_is_dropped, found)) and _is_inverse_root(surroundings, uses[0].node):
            found = [cubed for use in uses if (cubed := _cubed(facts, use)) is not None] or found
        if found:
            yield found
