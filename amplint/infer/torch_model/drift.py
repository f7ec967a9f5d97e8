"""Half-precision activations that arithmetic promotes to float32, and what a module returns of them.

``torch.result_type``: a float32 tensor with dimensions beside a float16 or bfloat16 one makes the result float32, and
nothing is said. Only runs without autocast count: under it, wide and narrow tensors meet by design.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import FLOAT32, FLOATS, LOW, Dtypes, Lane
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.origins import lineage
from amplint.infer.lattice.values import Mapping, Sequence, Tensor, Value
from amplint.infer.state.facts import BranchDtypes, Promotion
from amplint.infer.state.operand import Operand
from amplint.infer.torch_model.provenance import made_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.lattice.values import Origin
    from amplint.infer.state.facts import Sink
    from amplint.infer.state.frame import Frame
    from amplint.infer.torch_model.torch_ops import Op

MAX_PATHS = 12
"""Places on the paths that meet in a tensor that are looked back through for what promoted it."""
MAX_RETURNED = 64
"""Tensors of a result, nested in tuples and dicts, that are looked at."""


_SELECTING = ("torch.where", "torch.Tensor.where")
"""Operations that hand on values of their operands, and compute nothing that could need float32."""
_JOINING = ("torch.cat", "torch.concat", "torch.concatenate", "torch.stack", "torch.hstack", "torch.vstack")


def promoted(frame: Frame, op: Op, node: ast.expr | ast.stmt, operands: list[Operand], result: Dtypes) -> None:
    """Record an operation that promotes a half-precision operand to float32 because of another one.

    Under autocast only where the operation selects between activations and a parameter.
    """
    _overtake(frame, operands)
    first = operands[0].value.dtypes
    if all(operand.value.dtypes == first for operand in operands) or not frame.session.recorder.concerns(frame):
        return
    lanes = [
        number
        for number, lane in enumerate(result)
        if number and lane.mask == FLOAT32 and lane.exact and frame.live >> number & 1
    ]
    plain = [number for number in lanes if not frame.autocast[number].low]
    if _promoted_in(frame, op, node, operands, plain) or op.name not in _SELECTING:
        return
    under = [number for number in lanes if frame.autocast[number].on]
    _promoted_in(frame, op, node, operands, under)


def _overtake(frame: Frame, operands: list[Operand]) -> None:
    """Note what was promoted and goes straight on beside a parameter, or items of one, that is float32 by itself."""
    recorder = frame.session.recorder
    if not recorder.concerns(frame) or not recorder.selects:
        return
    for number, state in enumerate(frame.autocast):
        for wide in operands if state.on else ():
            lane = wide.value.dtypes[number]
            if lane.mask != FLOAT32 or not lane.exact or wide.value.dim == 0 or not _is_parameter(wide, number):
                continue
            for operand in operands:
                if operand is not wide:
                    recorder.overtaken((place.node for place in _straight(operand.value.origin)), number)


def _is_parameter(operand: Operand, lane: int) -> bool:
    path = list(lineage(operand.value.origin, lane))
    held = any(place.parameter or (place.placed and not place.kept) for place in path)
    return held and all(len(place.parents) < 2 for place in path)


def _straight(origin: Origin | None) -> Iterator[Origin]:
    """The places on the paths to a tensor, back to the first operation that several tensors meet in."""
    pending = [origin]
    for _ in range(MAX_PATHS):
        place = pending.pop() if pending else None
        if place is not None:
            yield place
            if not place.what or len(place.parents) < 2:
                pending.extend(place.parents)


def _promoted_in(frame: Frame, op: Op, node: ast.expr | ast.stmt, operands: list[Operand], lanes: list[int]) -> bool:
    for wide in operands:
        own = [n for n in lanes if wide.value.dtypes[n].mask == FLOAT32 and wide.value.dtypes[n].exact]
        own = [n for n in own if not _is_unconverted(frame, wide, n)]
        for narrow in operands:
            low = [n for n in own if narrow.value.dtypes[n].known and not narrow.value.dtypes[n].mask & ~LOW]
            if not low or narrow.value.maybe or wide.value.maybe or narrow.value.dim == 0:
                continue
            made = made_in((wide, wide), low[0])
            places = list(lineage(wide.value.origin, low[0]))
            parameter = any(place.placed and not place.kept for place in places)
            upcast = places[-1] if places and places[-1].cast and places[-1].made is None else None
            autocast = frame.autocast[low[0]].on
            if autocast and not (parameter and wide.value.leaf):
                continue
            if made is None and not parameter and (upcast is None or _is_buffer(narrow, low[0])):
                continue
            taken = narrow.value.dtypes[low[0]].assumed
            rebound = made is not None and not taken and op.name in _JOINING and _is_rebound(frame, narrow)
            sink: Sink = "parameter" if autocast else "rebound" if rebound else "returned"
            promotion = Promotion(node, op.name, narrow, wide, tuple(low), made, frame.function, upcast, sink)
            frame.session.recorder.promotion(frame, promotion)
            return True
    return False


def _is_rebound(frame: Frame, operand: Operand) -> bool:
    """Whether the running statement puts its result in the place of an operand: ``x = torch.cat([pad, x])``."""
    statement = frame.statement
    if operand.node is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    return ast.unparse(statement.targets[0]) == ast.unparse(operand.node)


def _is_buffer(operand: Operand, lane: int) -> bool:
    """Whether an operand is a buffer of its module: the weights of a loss, which is meant to be float32, say."""
    return any(place.placed and place.kept for place in lineage(operand.value.origin, lane))


def _is_unconverted(frame: Frame, operand: Operand, lane: int) -> bool:
    """Whether an operand is a buffer of a module that whoever runs it made and never converted: float32 is what that
    module computes in."""
    scenario = frame.session.scenarios[lane]
    converts = scenario.buffers != "float32" and not (scenario.keeps_explicit and operand.value.explicit)
    path = lineage(operand.value.origin, lane) if converts else ()
    return any(place.placed and place.kept and place.dtypes[lane].mask == FLOAT32 for place in path)


def returned(frame: Frame, value: Value) -> None:
    """Note which promotions a module's ``forward`` hands out."""
    if not frame.session.recorder.concerns(frame):
        return
    for tensor in _tensors(value):
        if tensor.dim == 0 or tensor.origin is None:
            continue
        for number, lane in enumerate(tensor.dtypes):
            if number and lane.mask == FLOAT32 and lane.exact:
                for place in lineage(tensor.origin, number):
                    frame.session.recorder.escapes(place.node, number)


def branches(frame: Frame) -> None:
    """Record two returns of a function whose tensors have different floating dtypes without autocast."""
    recorder = frame.session.recorder
    if not recorder.concerns(frame):
        return
    for index, (live, value, node, _) in enumerate(frame.returns):
        for other_live, other, other_node, _ in frame.returns[:index]:
            if node is None or other_node is None:
                continue
            pair = _differing(frame, value, live & other_live, other)
            if pair is not None:
                lanes, tensor, reference = pair
                if _chosen(reference, lanes[0]) and not _chosen(tensor, lanes[0]):
                    node, other_node, tensor, reference = other_node, node, reference, tensor
                operands = Operand("", node, tensor), Operand("", other_node, reference)
                recorder.branches(frame, BranchDtypes(node, other_node, *operands, tuple(lanes)))
                return


def _differing(frame: Frame, value: Value, live: int, other: Value) -> tuple[list[int], Tensor, Tensor] | None:
    """The scenarios in which two results, or the same place in both, have different dtypes."""
    if isinstance(value, Sequence) and isinstance(other, Sequence):
        if value.items is None or other.items is None or len(value.items) != len(other.items):
            return None
        pairs = (_differing(frame, x, live, y) for x, y in zip(value.items, other.items, strict=True))
        return next((pair for pair in pairs if pair is not None), None)
    if not isinstance(value, Tensor) or not isinstance(other, Tensor) or 0 in (value.dim, other.dim):
        return None
    if value.maybe or other.maybe:
        return None
    lanes = [
        number
        for number, (a, b) in enumerate(zip(value.dtypes, other.dtypes, strict=True))
        if number and live >> number & 1 and not frame.autocast[number].low and _differ(a, b)
    ]
    return (lanes, value, other) if lanes else None


def _differ(a: Lane, b: Lane) -> bool:
    """Whether two dtypes differ: for certain, or because a caller decides one and the source the other."""
    if (a.mask | b.mask) & ~FLOATS or not a.mask or not b.mask:
        return False
    fixed, free = (a, b) if a.exact else (b, a)
    return fixed.exact and bool(free.mask & ~fixed.mask) and (free.exact or (free.assumed and not fixed.assumed))


def _chosen(tensor: Tensor, lane: int) -> bool:
    """Whether the dtype was written into the source or begins with a tensor made there."""
    places = list(lineage(tensor.origin, lane))
    return bool(places) and (places[-1].cast or places[-1].made is not None)


def _tensors(value: Value) -> Iterator[Tensor]:
    pending, seen = [value], 0
    while pending and seen < MAX_RETURNED:
        seen += 1
        for option in options_of(pending.pop()):
            if isinstance(option, Tensor):
                yield option
            elif isinstance(option, Sequence):
                pending.extend(option.items if option.items is not None else (option.element,))
            elif isinstance(option, Mapping):
                pending.extend(option.items.values())
