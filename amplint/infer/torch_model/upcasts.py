"""Casts to float32 that autocast takes back, or that leave another operand behind: nothing raises there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import AUTOCASTABLE, FLOAT32, FLOATS, LOW, Lane
from amplint.infer.lattice.origins import deciding
from amplint.infer.names import classes
from amplint.infer.state.facts import Kind, Mismatch
from amplint.infer.torch_model.autocast import switched_off
from amplint.infer.torch_model.mismatches import record
from amplint.infer.torch_model.provenance import is_upcast

if TYPE_CHECKING:
    import ast

    from amplint.infer.state.frame import Frame
    from amplint.infer.state.operand import Operand
    from amplint.infer.torch_model.torch_ops import Op


def undone_upcast(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> None:
    """Record operands cast to float32 in the source that the ambient autocast casts straight back down.

    ``operands`` carry the dtypes before autocast's casts. A region that the code opens itself around the operation was
    meant. That float32 was, only a product shows that has nothing but float32 to multiply: beside a parameter or a
    low-precision operand a cast may as well make an integer mask or a float64 input fit. A cast variable may serve
    other operations, so the cast must be written in the operand, or be on all. A module is built outside of autocast.
    """
    if frame.making or (frame.constructing is not None and classes.is_module(frame.constructing.cls)):
        return
    region = frame.region
    if region is not None and any(state.on for state in region.inside):
        return
    lanes = []
    pair: tuple[Operand, Operand] | None = None
    for number, ambient in enumerate(frame.autocast):
        if number == 0 or not ambient.on or not frame.live >> number & 1:
            continue
        floating = [o for o in operands if o.value.dtypes[number].mask & FLOATS]
        made = [o for o in floating if o.value.dtypes[number] == Lane(FLOAT32) and not o.value.leaf]
        upcast = [o for o in made if is_upcast(o.value, number)]
        written = len(made) == len(floating) and any(_written_in(frame, o, number) for o in upcast)
        if len(floating) > 1 and (len(upcast) == len(floating) or (upcast and written)):
            lanes.append(number)
            others = [o for o in operands if o is not upcast[0]]
            pair = pair or (upcast[0], others[0] if others else upcast[0])
    if pair is not None:
        all_of = tuple(operands)
        record(frame, Mismatch(node, op.name, Kind.UNDONE_UPCAST, pair, all_of, tuple(lanes), raises=False))


def one_sided(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> None:
    """Record arithmetic where autocast was switched off between an operand that the code casts up and one that it
    leaves as it is, though it comes in low precision or may: as much as the other one did before its cast."""
    for upcast in operands:
        for plain in operands:
            if upcast is plain or plain.value.maybe or plain.value.dim == 0:
                continue
            lanes = [n for n in range(frame.session.lanes) if frame.live >> n & 1 and switched_off(frame, n)]
            lanes = [n for n in lanes if _cast_alone(frame, upcast, plain, n)]
            if lanes:
                pair, all_of = (upcast, plain), tuple(operands)
                record(frame, Mismatch(node, op.name, Kind.AUTOCAST_EXIT, pair, all_of, tuple(lanes), raises=False))
                return


def _cast_alone(frame: Frame, upcast: Operand, plain: Operand, lane: int) -> bool:
    wide, narrow = upcast.value.dtypes[lane], plain.value.dtypes[lane]
    if wide != Lane(FLOAT32) or not narrow.mask & LOW or narrow.mask & ~AUTOCASTABLE:
        return False
    origin = deciding(upcast.value.origin, lane)
    if origin is None or not origin.cast or origin.filename != str(frame.namespace.path):
        return False
    before = frame.session.recorder.cast_of(origin.node)
    return before is not None and before.dtypes[lane].mask == narrow.mask


def _written_in(frame: Frame, operand: Operand, lane: int) -> bool:
    """Whether the cast stands in the operand's own expression."""
    origin = deciding(operand.value.origin, lane)
    if origin is None or operand.node is None or origin.filename != str(frame.namespace.path):
        return False
    return frame.namespace.source.span(operand.node).contains(origin.span)
