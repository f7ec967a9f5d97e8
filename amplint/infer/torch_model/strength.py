"""How surely the dtypes of two operands differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import LOW
from amplint.infer.lattice.strength import Strength, gradient_strength, strength
from amplint.infer.torch_model.provenance import autocast_made, came_with

if TYPE_CHECKING:
    from amplint.infer.state.facts import Operand
    from amplint.infer.state.frame import Frame


def _may_be_wide(frame: Frame, gradient: Operand, lane: int) -> bool:
    """Whether forward combined, on every path, what autocast lowered with what some object was constructed with: nobody
    knows the dtype of that, and the output is as wide."""
    return not gradient.value.dtypes[lane].certain & LOW and came_with(frame, gradient)


def compare(frame: Frame, left: Operand, right: Operand) -> dict[int, Strength]:
    """How surely two operands differ, by lane of the scenarios in which they do.

    What also differs in the float32 control is no precision hazard, unless autocast made it.
    """
    gradient = left if left.value.gradient else right if right.value.gradient else None
    lanes: dict[int, Strength] = {}
    for number, (a, b) in enumerate(zip(left.value.dtypes, right.value.dtypes, strict=True)):
        if not frame.live >> number & 1:
            continue
        found = strength(a, b)
        if gradient is not None and frame.backward and left.value.gradient != right.value.gradient:
            of_gradient = gradient_strength(*((a, b) if gradient is left else (b, a)))
            lowered = autocast_made(gradient, number) and not _may_be_wide(frame, gradient, number)
            found = max(found, of_gradient if lowered else Strength.NONE)
        if found:
            lanes[number] = found
    if lanes.pop(0, Strength.NONE) >= Strength.PATH and not autocast_made(left, 0) and not autocast_made(right, 0):
        return {}
    return lanes
