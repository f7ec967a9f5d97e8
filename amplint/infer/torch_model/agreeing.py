"""What operands are where an operation runs that wants one dtype of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import BOOL, FLOATS, INTEGERS, UNKNOWN_LANE, Lane
from amplint.infer.state.operand import Operand
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.casts_by_autocast import seen_as

if TYPE_CHECKING:
    from amplint.infer.lattice.values import Tensor


def agreeing(operands: list[Operand], strict: tuple[tuple[str, ...], ...]) -> list[Operand]:
    """The operands as they are if the operation runs: one that is not known has the dtype of one that is, and where two
    that are known disagree nothing is known of any."""
    operands = _sure_beside(operands, strict)
    if all(lane.exact and lane.mask & FLOATS for o in operands for lane in o.value.dtypes):
        return operands
    for group in strict:
        names = [name.rstrip("*") for name in group]
        known = [o.value.dtypes for o in operands if o.name in names]
        agreed = [_agreed([d[lane] for d in known]) for lane in range(len(operands[0].value.dtypes))]
        integral = [o for o in operands if o.name in names and is_integral(o)]
        settled = [o for o in operands if o.name in names and (len(integral) == 1 or o not in integral)]
        operands = [_settled(o, agreed) if o in settled else o for o in operands]
    return operands


def _sure_beside(operands: list[Operand], strict: tuple[tuple[str, ...], ...]) -> list[Operand]:
    """The operands, those no longer unsure that have to agree with one whose floating dtype is certain."""
    if not any(o.value.unsure for o in operands):
        return operands
    for group in strict:
        names = [name.rstrip("*") for name in group]
        if any(o.name in names and _is_certain(o.value) for o in operands):
            operands = [
                Operand(o.name, o.node, replace(o.value, unsure=False)) if o.name in names and o.value.unsure else o
                for o in operands
            ]
    return operands


def _is_certain(tensor: Tensor) -> bool:
    flags = tensor.unsure or tensor.maybe or tensor.optional
    return not flags and all(lane.exact and lane.mask & FLOATS for lane in tensor.dtypes)


def _agreed(lanes: list[Lane]) -> Lane | None:
    """The floating dtype that operands have if an operation runs; unknown where they have several, None where nothing
    says."""
    exact = [lane for lane in lanes if lane.exact and lane.mask & FLOATS]
    if not exact:
        return None
    return exact[0] if all(lane.mask == exact[0].mask for lane in exact) else UNKNOWN_LANE


def is_integral(operand: Operand) -> bool:
    return all(lane.known and not lane.mask & ~(INTEGERS | BOOL) for lane in operand.value.dtypes)


def _settled(operand: Operand, agreed: list[Lane | None]) -> Operand:
    """An operand with the dtypes agreed on, where its own are not settled but may be those.

    One that is said to be an integer tensor is not, where torch would take none beside floating ones.
    """
    lanes = []
    for lane, other in zip(operand.value.dtypes, agreed, strict=True):
        if other is None or (lane.exact and lane.mask == other.mask):
            lanes.append(lane)
        elif not other.mask or not lane.known or lane.mask & other.mask or not lane.mask & ~(INTEGERS | BOOL):
            lanes.append(other)
        else:
            left = lane.mask & ~FLOATS
            lanes.append(Lane(left) if left else UNKNOWN_LANE)
    return seen_as(operand, tuple(lanes))
