"""Epsilons that float16 does not bear: they are zero there, or the gradient beside them is infinite."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from amplint.claims.low_precision import by_node, claimed_lanes, doubted, surest
from amplint.claims.operands import short_name
from amplint.claims.result_uses import uses
from amplint.claims.surroundings import Surroundings
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from amplint.infer.lattice.values import Limit, Trait
from amplint.infer.torch_model.torch_ops import LOGARITHMS
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Use
    from amplint.infer.state.operand import Operand
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
_LARGER = ("maximum", "max", "amax")
_REACHING_ZERO = (Trait.SHARE, Trait.REST, Trait.SPREAD)
AT_ZERO = frozenset(
    [
        *LOGARITHMS,
        *("acosh", "arccosh", "bessel_y0", "bessel_y1", "digamma", "psi", "entr", "gammaln", "lgamma", "logit"),
        *("modified_bessel_k0", "modified_bessel_k1", "multigammaln", "mvlgamma", "ndtri", "polygamma"),
        *("reciprocal", "rsqrt", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "sqrt"),
        *("div", "divide", "floor_divide", "fmod", "gammainc", "gammaincc", "hypot", "igamma", "igammac"),
        *("remainder", "true_divide", "xlogy", "zeta"),
    ]
)
"""Functions of one or two numbers whose result or gradient is not finite where one of them, or both, are zero: the
tests run those that torch's OpInfo declares."""
_NOT_AT_ZERO = AT_ZERO | {"pow", "float_power", "cosine_similarity", "normalize", ""}
"""Those consumers, what an exponent or an epsilon of their own decides, and what is no call, such as a division."""


@dataclass(frozen=True, slots=True)
class Vanishing:
    """An epsilon that float16 does not bear: the use, the parameter it is passed by, and the scenarios.

    ``cubed``: it is not zero, but the gradient of the inverse square root that it bounds is infinite.
    """

    use: Use
    parameter: str
    lanes: dict[int, Standing]
    cubed: bool

    @property
    def operand(self) -> Operand:
        return self.use.operands[0]

    @property
    def constant(self) -> ast.expr | None:
        """The expression of the epsilon."""
        return self.use.nodes.get(self.parameter)


def _vanishing(facts: FileFacts, use: Use, consumer: str) -> Vanishing | None:
    """The epsilon of an operation whose result ``consumer`` gets.

    Most tensors of half weights keep away from zero: distances, counts, densities. Under autocast a matmul or a layer
    rounds to zero what was none.
    """
    for parameter in _GUARDS.get(short_name(use.op).rstrip("_"), ()) if use.operands else ():
        number, trait = use.numbers.get(parameter), use.operands[0].value.trait
        if number is None:
            continue
        lanes = surest(claimed_lanes(facts, use, use.operands[0], partial(_vanishes, number)))
        half = not any(facts.scenarios[lane].autocast for lane in lanes)
        cubed = not lanes and consumer == "rsqrt" and trait is Trait.POSITIVE
        if cubed and not isinstance(number, Limit) and 0 < number < _FINITE_CUBE:
            # Autocast computes the root and its gradient in float32.
            lanes = claimed_lanes(facts, use, use.operands[0], lambda _, bit: bit == FLOAT16)
            lanes = surest({n: each for n, each in lanes.items() if facts.scenarios[n].autocast is None})
        elif (half and trait not in _REACHING_ZERO and consumer not in LOGARITHMS) or (
            parameter in _GUARDS["add"] and consumer not in _NOT_AT_ZERO
        ):
            lanes = doubted(lanes, doubts.VALUES_DECIDE)
        if lanes:
            return Vanishing(use, parameter, lanes, cubed)
    return None


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
    for of_node in by_node(facts.uses):
        call = surroundings.parent(of_node[0].node)
        call = surroundings.parent(call) if isinstance(call, ast.Attribute) else call
        consumer = surroundings.called(call).rstrip("_") if isinstance(call, ast.Call) else ""
        found = [each for use in of_node if (each := _vanishing(facts, use, consumer)) is not None]
        if consumer in LOGARITHMS and isinstance(call, ast.Call) and _is_floored(surroundings, call):
            found = [replace(each, lanes=doubted(each.lanes, doubts.VALUES_DECIDE)) for each in found]
        if found:
            yield found


def _is_floored(around: Surroundings, logarithm: ast.Call) -> bool:
    """Whether the larger of two numbers takes the place of the logarithm before anything else is made of it, as in
    spectrograms, which end a constant below their largest number."""
    function = around.function(logarithm)
    found = list(uses(around, function, logarithm)) if function is not None else []
    above = [[node for node in around.ancestors(use) if isinstance(node, ast.Call)] for use in found]
    return bool(found) and all(any(around.called(call) in _LARGER for call in calls) for calls in above)
