"""Operations of other files that fail for what the checked file hands them: told at its own call.

What fails there whoever calls is that file's own defect. So a call is told only where the program runs without
autocast, what it hands over has a dtype that the file decided, which is not that of the scenario's inputs, and what
it meets there has that of the inputs: from any other caller it would have run. It is told of modules only: code that
drives them makes its inputs for models whose dtype it knows.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import BITS
from amplint.infer.lattice.origins import deciding
from amplint.infer.state.facts import Kind

if TYPE_CHECKING:
    from amplint.infer.state.facts import Mismatch
    from amplint.infer.state.frame import Frame
    from amplint.infer.state.operand import Operand

_KINDS = (Kind.ATTENTION, Kind.UPCAST, Kind.CONSTANT, Kind.TABLE, Kind.MIXED)


def brought_lanes(frame: Frame, caller: Frame, found: Mismatch) -> tuple[int, ...]:
    """The scenarios, of those in which an operation fails, in which the checked file is to blame for it.

    ``caller`` is the last frame of the checked file, ``frame`` the other file's in which the operation runs.
    """
    if found.kind not in _KINDS:
        return ()
    return tuple(number for number in found.lanes if _is_brought(frame, caller, found.pair, number))


def _is_brought(frame: Frame, caller: Frame, pair: tuple[Operand, Operand], number: int) -> bool:
    scenario = frame.session.scenarios[number]
    if not frame.session.by_module or scenario.autocast or frame.autocast[number].low:
        return False
    inputs = BITS[scenario.inputs]
    masks = [operand.value.dtypes[number].mask for operand in pair]
    if masks.count(inputs) != 1:
        return False
    wrong = pair[masks.index(inputs) - 1]
    lane = wrong.value.dtypes[number]
    origin = deciding(wrong.value.origin, number)
    if origin is None or not origin.what or wrong.value.leaf or wrong.value.maybe:
        return False
    if not lane.known or lane.assumed or lane.open:
        return False
    return not isinstance(origin.node, ast.arg) and origin.filename == str(caller.namespace.path)
