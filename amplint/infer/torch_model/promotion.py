"""What autocast promotes: it takes float32 and its own 16-bit dtype, and raises for the other one.

``at::autocast::prioritize`` looks at the tensors one after the other and stops caring at the first of float32; float64
and integers it passes over (``amplint.emulation.kernels`` has the same, over CPU kernels).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import AUTOCASTABLE, LOW
from amplint.infer.lattice.strength import strength
from amplint.infer.state.facts import Kind, Mismatch
from amplint.infer.torch_model.mismatches import INDEX_WRITES, record

if TYPE_CHECKING:
    import ast

    from amplint.infer.state.frame import Frame
    from amplint.infer.state.operand import Operand
    from amplint.infer.torch_model.torch_ops import Op


def refuses(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> tuple[int, ...]:
    """Note an operation that autocast promotes and that surely gets the 16-bit dtype which is not autocast's own; gives
    the scenarios. Beside a tensor of its own one, the two disagree."""
    if frame.making or frame.constructing is not None:
        return ()
    found = {n: operand for n in range(frame.session.lanes) if (operand := _refused(frame, operands, n)) is not None}
    if not found:
        return ()
    lane, refused = next(iter(found.items()))
    own = next((o for o in operands if o.value.dtypes[lane].mask == frame.autocast[lane].low), None)
    lanes = tuple(n for n, operand in found.items() if operand is refused)
    strengths = tuple(strength(own.value.dtypes[n], refused.value.dtypes[n]) for n in lanes) if own is not None else ()
    if own is not None and all(strengths):
        kind = Kind.INDEX_WRITE if op.name in INDEX_WRITES else Kind.MIXED
        record(frame, Mismatch(node, op.name, kind, (own, refused), tuple(operands), lanes, strengths))
    else:
        frame.refuse(node, tuple(found))
    return tuple(found)


def _refused(frame: Frame, operands: list[Operand], number: int) -> Operand | None:
    """The operand for which autocast raises in a scenario; None where it does not, or may not get there."""
    state = frame.autocast[number]
    if not state.on or not frame.live >> number & 1:
        return None
    for operand in operands:
        tensor, lane = operand.value, operand.value.dtypes[number]
        if tensor.maybe or tensor.unsure or tensor.optional or not lane.exact:
            return None
        if lane.mask & LOW and lane.mask != state.low:
            return operand
        if lane.mask & AUTOCASTABLE and lane.mask != state.low:
            return None
    return None
