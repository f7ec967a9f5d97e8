"""Operations that overflow or lose accuracy in the low precision that they are computed in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
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
from amplint.claims.normalising import is_rooted
from amplint.claims.operands import short_name
from amplint.claims.surroundings import Surroundings
from amplint.infer.lattice.dtypes import BITS, LOW
from amplint.infer.lattice.scenarios import CONTROL
from amplint.infer.lattice.values import Const, Trait
from amplint.infer.torch_model.torch_ops import LOGARITHMS
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.finding import Doubt
    from amplint.infer.state.facts import FileFacts, Operand, Use
    from amplint.judge.certainty import Standing

SUMS = frozenset(("sum", "mean", "nansum"))
_NORMS = frozenset(("norm", "vector_norm"))
_GRADIENTS = (Trait.GRADIENT, Trait.BUCKET)
_GRADIENT_SQUARES = (Trait.GRADIENT_SQUARE, Trait.BUCKET_SQUARE)
_EXPONENTIALS = frozenset(("exp", "exp2", "expm1", "cosh", "sinh"))
_ACCUMULATED = frozenset(("cumsum", "cumprod", "logcumsumexp"))
_PRODUCT = "prod"
_SHARES = "softmax"
_LOGARITHMS_OF_SHARES = frozenset(("log_softmax", "logsumexp", "logsigmoid"))
_SMALL = (Trait.NEGATIVE, Trait.DECAY, Trait.BOUNDED, Trait.SHARE, Trait.REST)
_SQUARES = "squares overflow beyond 256"
_BARE_SQUARES = f"{_SQUARES}, and are zero below 1.7e-4"
_FLOAT16, _EITHER = BITS["float16"], LOW


@dataclass(frozen=True, slots=True)
class Prone:
    """An operation, its operand, in which scenarios that is low precision, and what goes wrong."""

    use: Use
    operand: Operand
    lanes: dict[int, Standing]
    what: str

    @property
    def is_logarithm(self) -> bool:
        return short_name(self.use.op).rstrip("_") in LOGARITHMS


def _prone(facts: FileFacts, use: Use) -> Prone | None:
    if not use.operands or _given_dtype(use):
        return None
    short, operand = short_name(use.op).rstrip("_"), use.operands[0]
    hazard = _hazard(short, operand.value.trait)
    if hazard is None:
        return None
    failing, what = hazard
    differentiated = in_autograd_function(facts, use)
    if operand.value.trait in (*_GRADIENTS, *_GRADIENT_SQUARES):
        lanes = _lanes_of_gradient(facts, use, operand)
    else:
        claimed = low_lanes if short in _ACCUMULATED and differentiated else claimed_lanes
        lanes = claimed(facts, use, operand, lambda _, bit: bool(bit & failing))
    if what is _SQUARES and short != "mean" and "dim" not in use.arguments:
        what = "a sum over everything overflows beyond 65504"
    if short in _ACCUMULATED and not differentiated and _may_be_a_count(operand):
        lanes = doubted(lanes, doubts.MAY_COUNT)
    return Prone(use, operand, surest(lanes), what) if lanes else None


def _lanes_of_gradient(facts: FileFacts, use: Use, operand: Operand) -> dict[int, Standing]:
    """The scenarios of low precision in which a gradient is float16, as its parameter is."""
    return {
        number: ASSUMED
        for number, lane in enumerate(operand.value.dtypes)
        if lane.mask == _FLOAT16 and use.live >> number & 1 and facts.scenarios[number] != CONTROL
    }


def _may_be_a_count(operand: Operand) -> bool:
    """Whether a tensor has the dtype of what a caller passes, and nothing says that this is floating: a mask, lengths.

    What an autograd Function gets is.
    """
    return operand.value.trait is None and any(lane.symbol is not None for lane in operand.value.dtypes)


def _hazard(short: str, trait: Trait | None) -> tuple[int, str] | None:
    """The dtypes in which an operation goes wrong on such values, and what happens."""
    if short in SUMS and trait is Trait.SQUARE:
        return _FLOAT16, _SQUARES
    if (short in SUMS and trait in _GRADIENT_SQUARES) or (short in _NORMS and trait in _GRADIENTS):
        return _FLOAT16, "gradients times a loss scale overflow it"
    if short in LOGARITHMS and trait in (Trait.SHARE, Trait.REST):
        if trait is Trait.SHARE:
            return _FLOAT16, "what is below 3e-8 is zero there, and its logarithm infinite"
        return _EITHER, "near 1 that is zero, and its logarithm infinite"
    if short in _EXPONENTIALS and trait is Trait.DECAY:
        return _EITHER, "exp of exp multiplies the rounding error"
    if short in _EXPONENTIALS and trait not in _SMALL:
        return _FLOAT16, "it overflows beyond 11"
    if short in _ACCUMULATED:
        return _EITHER, "rounding adds up along the sum" if short != "cumprod" else "rounding adds up along the product"
    if short == _PRODUCT:
        return _EITHER, "rounding adds up along the product"
    if short == _SHARES:
        return _EITHER, "the probabilities are rounded"
    return (_EITHER, "it is rounded") if short in _LOGARITHMS_OF_SHARES else None


def _judged(prone: Prone, surroundings: Surroundings) -> Prone:
    """With what depends on the numbers: whether anything is lost that matters.

    The dtype alone proves that sums are rounded, not that squares are so large. Where nothing is added below the root,
    small squares are lost as well: the root of silence is zero.
    """
    held = tuple(_doubts(prone, surroundings))
    if held or prone.what is not _SQUARES:
        return replace(prone, lanes=doubted(prone.lanes, *held))
    bare = isinstance(prone.use.node, ast.expr) and is_rooted(surroundings, prone.use.node, bare=True)
    what = _BARE_SQUARES if bare else _SQUARES
    return replace(prone, lanes=assumed(prone.lanes), what=what)


def _doubts(prone: Prone, surroundings: Surroundings) -> Iterator[Doubt]:
    """Why the hazard may not be there for the usual numbers: norms, decays, shares that choose experts.

    Norms of gradients are so large only where a loss scale is kept on them, which no ``GradScaler`` does to float16
    parameters. Their squares overflow beyond 256 without one, in the buckets of a communication hook, which may be
    compressed, and for parameters of float16, which hardly anyone trains.
    """
    short, trait, use = short_name(prone.use.op).rstrip("_"), prone.operand.value.trait, prone.use
    if trait in (*_GRADIENTS, *_GRADIENT_SQUARES):
        if trait is not Trait.BUCKET_SQUARE:
            yield doubts.NEEDS_LOSS_SCALE
    elif short in SUMS:
        if not isinstance(use.node, ast.expr) or "dim" not in use.arguments or not is_rooted(surroundings, use.node):
            yield doubts.NO_ROOT
    elif short == _SHARES:
        if not isinstance(use.node, ast.expr) or not decides(surroundings, use.node):
            yield doubts.NO_CHOICE
    elif short not in (*_ACCUMULATED, *LOGARITHMS) and not (short in _EXPONENTIALS and trait is Trait.DECAY):
        yield doubts.VALUES_DECIDE


def _given_dtype(use: Use) -> bool:
    dtype = use.arguments.get("dtype")
    return dtype is not None and not (isinstance(dtype, Const) and dtype.value is None)


def squared(surroundings: Surroundings, node: ast.expr | None) -> tuple[ast.expr, ...]:
    """What an expression squares, as often as it stands there; nothing where that is elsewhere."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right) if isinstance(node.op, ast.Mult) else (node.left,)
    if isinstance(node, ast.Call) and surroundings.called(node) in ("pow", "square"):
        of = surroundings.subject(node)
        return (of,) if of is not None else ()
    return ()


def prone_operations(facts: FileFacts) -> Iterator[list[Prone]]:
    """What goes wrong in each operation on a tensor of low precision."""
    surroundings: Surroundings | None = None
    for uses in by_node(facts.uses):
        found = [prone for use in uses if (prone := _prone(facts, use)) is not None]
        if found:
            surroundings = surroundings or Surroundings.of(facts.source.tree)
            yield [_judged(prone, surroundings) for prone in found]
