"""Operations that overflow or lose accuracy in the low precision that they are computed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.choices import decides
from amplint.claims.low_precision import (
    assumed,
    by_node,
    claimed_lanes,
    doubted,
    in_autograd_function,
    low_lanes,
    surest,
)
from amplint.claims.normalising import normalises
from amplint.claims.operands import short_name
from amplint.claims.surroundings import Surroundings
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import FLOAT16, LOW
from amplint.infer.lattice.scenarios import CONTROL
from amplint.infer.lattice.values import Const, Trait
from amplint.infer.torch_model.torch_ops import LOGARITHMS
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Use
    from amplint.infer.state.operand import Operand
    from amplint.judge.certainty import Standing

SUMS = frozenset(("sum", "mean", "nansum"))
_EXPONENTIALS = frozenset(("exp", "exp2", "expm1", "cosh", "sinh"))
_ACCUMULATED = frozenset(("cumsum", "cumprod", "logcumsumexp"))
_ROUNDED = frozenset(("prod", "softmax", "log_softmax", "logsumexp", "logsigmoid"))
_SMALL = (Trait.NEGATIVE, Trait.BOUNDED, Trait.SHARE, Trait.REST)


@dataclass(frozen=True, slots=True)
class Prone:
    """An operation, in which scenarios its operand is low precision, and what goes wrong."""

    use: Use
    lanes: dict[int, Standing]
    what: str

    @property
    def operand(self) -> Operand:
        return self.use.operands[0]

    @property
    def is_logarithm(self) -> bool:
        return short_name(self.use.op).rstrip("_") in LOGARITHMS


def _hazard(short: str, trait: Trait | None) -> tuple[int, str, bool] | None:
    """The dtypes in which an operation goes wrong on such values, what happens, and whether that matters always."""
    if short in SUMS and trait is Trait.SQUARE:
        return FLOAT16, "squares overflow beyond 256", False
    if short in SUMS and trait is Trait.BUCKET_SQUARE:
        return FLOAT16, "gradients times a loss scale overflow it", True
    if short in LOGARITHMS and trait is Trait.SHARE:
        return FLOAT16, "what is below 3e-8 is zero there, and its logarithm infinite", True
    if short in LOGARITHMS and trait is Trait.REST:
        return LOW, "near 1 that is zero, and its logarithm infinite", True
    if short in _EXPONENTIALS and trait is Trait.DECAY:
        return LOW, "exp of exp multiplies the rounding error", True
    if short in _EXPONENTIALS and trait not in _SMALL:
        return FLOAT16, "it overflows beyond 11", False
    if short in _ACCUMULATED:
        return LOW, "rounding adds up", trait is Trait.SHARE
    return (LOW, "it is rounded", False) if short in _ROUNDED else None


def _matters(short: str, use: Use, surroundings: Surroundings, in_function: bool) -> bool:
    """Whether what depends on the numbers is lost for the usual ones.

    Residual streams, which normalisation layers get, do exceed 256. What only a caller knows may be a mask or lengths,
    whose running sums are integers; what an autograd Function gets is floating. Running sums of ones are exact for the
    rows of an image.
    """
    operand = use.operands[0]
    if short == "mean":
        return normalises(surroundings, use.node, operand.node)
    if short in _ACCUMULATED:
        known = all(lane.symbol is None for lane in operand.value.dtypes)
        return in_function or (known and operand.value.trait not in (Trait.EQUAL, Trait.ONES))
    return short == "softmax" and decides(surroundings, use.node)


def _prone(facts: FileFacts, use: Use, surroundings: Surroundings) -> Prone | None:
    short, operand = short_name(use.op).rstrip("_"), use.operands[0]
    dtype, hazard = use.arguments.get("dtype", Const(None)), _hazard(short, operand.value.trait)
    if hazard is None or not (isinstance(dtype, Const) and dtype.value is None):
        return None
    failing, what, always = hazard
    in_function = short in _ACCUMULATED and in_autograd_function(facts, use)
    if operand.value.trait is Trait.BUCKET_SQUARE:
        lanes = _lanes_of_gradient(facts, use, operand)
    else:
        claimed = low_lanes if in_function else claimed_lanes
        lanes = claimed(facts, use, operand, lambda _, bit: bool(bit & failing))
    if operand.value.trait is Trait.SQUARE:
        lanes = assumed(lanes)
    if lanes and not always and not _matters(short, use, surroundings, in_function):
        lanes = doubted(lanes, doubts.VALUES_DECIDE)
    return Prone(use, surest(lanes), what) if lanes else None


def _lanes_of_gradient(facts: FileFacts, use: Use, operand: Operand) -> dict[int, Standing]:
    """The scenarios of low precision in which a gradient is float16, as its parameter is."""
    return {
        number: ASSUMED
        for number, lane in enumerate(operand.value.dtypes)
        if lane.mask == FLOAT16 and use.live >> number & 1 and facts.scenarios[number] != CONTROL
    }


def prone_operations(facts: FileFacts) -> Iterator[list[Prone]]:
    """What goes wrong in each operation on a tensor of low precision."""
    if not facts.uses:
        return
    surroundings = Surroundings.of(facts.source.tree)
    for uses in by_node(facts.uses):
        found = [prone for use in uses if use.operands and (prone := _prone(facts, use, surroundings)) is not None]
        if found:
            yield found
