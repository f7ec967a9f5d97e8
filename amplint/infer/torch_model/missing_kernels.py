"""Operations that raise for want of a kernel: nothing behind them is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import BITS

if TYPE_CHECKING:
    import ast

    from amplint.infer.lattice.values import Value
    from amplint.infer.state.facts import Operand
    from amplint.infer.state.frame import Frame
    from amplint.infer.torch_model.torch_ops import Op


def refuse(
    frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand], bound: dict[str, Value]
) -> tuple[int, ...]:
    """The live scenarios, by number, in which the device has no kernel for the dtype that the first operand surely has.

    ``operands`` carry the dtypes after autocast's casts.
    """
    session = frame.session
    missing = {BITS[name] for name in op.lacks.get(session.device, ())}
    if not missing or not operands or frame.constructing is not None or op.runs_large(bound):
        return ()
    value = operands[0].value
    if value.maybe or value.unsure or value.optional:
        return ()
    lanes = tuple(
        n for n, lane in enumerate(value.dtypes) if frame.live >> n & 1 and lane.exact and lane.mask in missing
    )
    if lanes:
        session.recorder.no_kernel(frame, node, lanes)
    return lanes
