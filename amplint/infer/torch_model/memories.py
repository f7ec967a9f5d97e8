"""In whose memory tensors lie, and operations that torch refuses since their operands lie in two.

What code makes on no device lies in the host's memory until something moves it; a model's parameters and buffers, and
what is computed with them, lie on the device that is judged. Where the two meet with dimensions torch raises, in every
dtype. What a user calls a method with may lie on either, and so may all else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.values import Const, Device, Sequence, Tensor, Value
from amplint.infer.state.facts import Unmoved
from amplint.infer.state.operand import Operand
from amplint.infer.torch_model.provenance import autocast_made

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator, Mapping

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame
    from amplint.infer.torch_model.torch_ops import Op


def named(frame: Frame, device: Value) -> bool | None:
    """Whether a device is the host, by what names it: None where that is neither, or not the one that is judged."""
    text = device.type if isinstance(device, Device) else device.value if isinstance(device, Const) else None
    kind = text.partition(":")[0] if isinstance(text, str) else None
    return True if kind == "cpu" else False if kind == frame.session.device else None


LIES_ON = {f"is_{device}": device for device in ("cpu", "cuda", "mps", "xpu")}
"""Attributes that ask for a tensor's device."""


def lies_on(frame: Frame, asked: str, *, host: bool) -> AutocastFlag:
    """The answer of one of them: a tensor lies on the device that is judged, but for what is made in the host's
    memory."""
    here, lanes = LIES_ON[asked] == ("cpu" if host else frame.session.device), frame.session.all_lanes
    return AutocastFlag(lanes, 0) if here else AutocastFlag(0, lanes)


def placed(frame: Frame, made: Tensor) -> bool | None:
    """Where a parameter or buffer lies when its module runs: with that, if its constructor makes it.

    Who builds a model outside of a module's code moves it there too, perhaps.
    """
    if frame.constructing is None and not frame.making:
        return made.host
    return False if frame.in_module else None


def on_host(operands: list[Operand]) -> bool:
    """Whether all operands lie in the host's memory."""
    return bool(operands) and all(o.value.host for o in operands)


def result(frame: Frame, op: Op, operands: list[Operand]) -> bool | None:
    """Where a result lies: with the operands.

    Beside a tensor with dimensions in the host's memory, what nobody knows is a number, or lies there too, or nothing
    runs; so does a model of which nobody knows where it lies, but in a region that the code opens for the device. In
    the constructor of a module its parameters have not been moved yet.
    """
    there = any(o.value.host and o.value.dim == 1 for o in operands)
    if on_host(operands) or (there and all(o.value.host or _may_lie_there(frame, o) for o in operands)):
        return True
    if there or frame.making or frame.constructing is not None:
        return None
    deciding = (o for place, o in enumerate(operands) if place == 0 or o.name in op.together)
    return False if any(o.value.host is False for o in deciding) else None


def _may_lie_there(frame: Frame, operand: Operand) -> bool:
    """Whether nobody knows where an operand lies, so that it lies where the others do, or nothing runs."""
    return operand.value.host is None and not (operand.value.leaf and opens_a_region(frame))


def opens_a_region(frame: Frame) -> bool:
    """Whether the code itself switches autocast on: so it is in the scenarios that do not."""
    states = zip(frame.autocast, frame.session.scenarios, strict=True)
    return any(state.low for state, scenario in states if not scenario.autocast)


def compare(frame: Frame, node: ast.expr | ast.stmt, op: Op, arguments: Arguments, bound: Mapping[str, Value]) -> None:
    """Note an operation whose arguments lie in two memories, where it takes them from one."""
    given = [bound[name] for name in op.together if name in bound]
    if op.variadic in op.together:
        given += arguments.positional[op.params.index(op.variadic) + 1 :]
    meet(frame, node, given)


def meet(frame: Frame, node: ast.expr | ast.stmt, given: Iterable[Value]) -> None:
    """Note that a tensor of the host's memory meets one of the device: what surely lies there, or where the device's
    autocast has acted, on some path, on what it is computed of. Constructors run before anything is moved."""
    tensors = [tensor for value in given for tensor in _sure(value)]
    if not any(tensor.host and tensor.dim == 1 for tensor in tensors) or frame.session.device == "cpu":
        return
    others = [tensor for tensor in tensors if not tensor.host]
    if not others or frame.making or frame.constructing is not None:
        return
    there = any(tensor.host is False for tensor in others)
    live = (number for number in range(frame.session.lanes) if frame.live >> number & 1)
    lanes = tuple(number for number in live if there or any(_was_cast(tensor, number) for tensor in others))
    if lanes:
        frame.session.recorder.happened(frame, Unmoved(node, lanes))


def meets_unmoved(frame: Frame, node: ast.expr, given: Value) -> None:
    """Note that a layer which was made while its model runs, and lies in the host's memory, is called with what is not
    known to lie there too."""
    if frame.session.device == "cpu" or frame.making or frame.constructing is not None:
        return
    lanes = tuple(number for number in range(frame.session.lanes) if frame.live >> number & 1)
    if lanes and not (isinstance(given, Tensor) and given.host):
        frame.session.recorder.happened(frame, Unmoved(node, lanes))


def _was_cast(tensor: Tensor, lane: int) -> bool:
    """Whether autocast, on some path, has made low precision what a tensor is computed of."""
    return autocast_made(Operand("", None, tensor), lane)


def _sure(value: Value) -> Iterator[Tensor]:
    """The tensors that a value surely is, or holds."""
    if isinstance(value, Tensor):
        if not (value.maybe or value.unsure or value.optional):
            yield value
    elif isinstance(value, Sequence):
        for item in value.items if value.items is not None else (value.element,):
            yield from _sure(item)
