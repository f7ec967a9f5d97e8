"""The operands of an operation as its kernel sees them, when autocast has cast them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import AUTOCASTABLE, FLOAT32, UNKNOWN_LANE, Dtypes, Lane
from amplint.infer.names.classes import is_module
from amplint.infer.state.operand import Operand
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.memories import on_host, opens_a_region
from amplint.infer.torch_model.torch_ops import BANNED, FP32, FP32_RESULT, PROMOTE

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame


def after_autocast(frame: Frame, operands: list[Operand], policy: str) -> list[Operand]:
    """The operands with the dtypes that the kernel sees."""
    autocast = frame.autocast
    if policy == FP32_RESULT or not any(state.low for state in autocast):
        return operands
    session = frame.session
    if policy == BANNED or _beside_the_host(frame, [o for o in operands if _may_be_cast(o)]):
        return [seen_as(o, select_on(frame, session.unknown, o.value.dtypes)) for o in operands]
    if policy == PROMOTE:
        wide = _widest(operands, session.unknown)
        return [seen_as(o, select_on(frame, _promoted(o.value.dtypes, wide), o.value.dtypes)) for o in operands]
    target = FLOAT32 if policy == FP32 else None
    sure = [any(_autocast_casts(o, lane) for o in operands) for lane in range(session.lanes)]
    return [seen_as(o, session.autocast_dtypes(o.value.dtypes, autocast, target, sure)) for o in operands]


def left_alone(frame: Frame, operands: list[Operand]) -> bool:
    """Whether the autocast of the device that is judged does not act, since all operands lie in the host's memory."""
    return frame.session.device != "cpu" and on_host(operands)


def not_cast(frame: Frame, operands: list[Operand], policy: str | None) -> bool:
    """Whether autocast casts nothing for an operation, since operands lie in the host's memory.

    What is multiplied with a tensor of the host's memory lies there too, or nothing runs at all; in methods of modules,
    what they make on no device may follow the default one, and then nobody knows where floating tensors lie; integers
    follow what they are used with. Autocast refuses what it bans before devices are compared.
    """
    beside = policy != BANNED and not is_module(frame.owner) and _beside_the_host(frame, operands)
    return beside or left_alone(frame, operands)


def _beside_the_host(frame: Frame, operands: list[Operand]) -> bool:
    """Whether an operand surely lies in the host's memory, and none is a layer's weight, which goes with its model.

    Where no code opens the region, but a scenario, the model lies with what it gets, or nothing runs.
    """
    made = any(o.value.host and o.value.dim == 1 for o in operands)
    led = made and any(o.value.leaf for o in operands) and opens_a_region(frame)
    return frame.session.device != "cpu" and made and not led


def seen_as(operand: Operand, dtypes: Dtypes) -> Operand:
    """An operand with other dtypes."""
    if dtypes == operand.value.dtypes:
        return operand
    return Operand(operand.name, operand.node, replace(operand.value, dtypes=dtypes))


def _may_be_cast(operand: Operand) -> bool:
    return any(lane.mask & AUTOCASTABLE for lane in operand.value.dtypes)


def _autocast_casts(operand: Operand, lane: int) -> bool:
    mask = operand.value.dtypes[lane].mask
    return bool(mask & AUTOCASTABLE) and not mask & ~AUTOCASTABLE


def _widest(operands: list[Operand], unknown: Dtypes) -> Dtypes:
    lanes = []
    for number in range(len(unknown)):
        masks = [o.value.dtypes[number] for o in operands]
        if any(not lane.known for lane in masks):
            lanes.append(UNKNOWN_LANE)
        elif any(lane.mask == FLOAT32 for lane in masks):
            lanes.append(Lane(FLOAT32))
        else:
            mask = 0
            for lane in masks:
                mask |= lane.mask & AUTOCASTABLE
            lanes.append(Lane(mask, None, any(lane.assumed for lane in masks)))
    return tuple(lanes)


def _promoted(dtypes: Dtypes, wide: Dtypes) -> Dtypes:
    return tuple(w if d.mask & AUTOCASTABLE or not d.mask else d for d, w in zip(dtypes, wide, strict=True))


def select_on(frame: Frame, on: Dtypes, off: Dtypes) -> Dtypes:
    return tuple(
        x if state.on else UNKNOWN_LANE if state.unknown else y
        for x, y, state in zip(on, off, frame.autocast, strict=True)
    )
