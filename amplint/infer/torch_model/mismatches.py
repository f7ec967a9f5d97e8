"""What raises: operands of strict operations that disagree, and those that the device has no kernel for.

torch raises where operands of a strict operation differ in dtype after autocast had its say. What also fails in the
float32 control is no precision hazard (or a mistake of the inference) and is dropped.
"""

from __future__ import annotations

import ast
from itertools import combinations, product
from typing import TYPE_CHECKING

from amplint.finding import Cause
from amplint.infer.lattice.dtypes import BITS, BOOL, FLOAT32, FLOAT64, INTEGERS, LOW, Symbol, category
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.strength import Strength, gradient_strength, strength
from amplint.infer.lattice.values import Const, Number, Sequence, Tensor, Value
from amplint.infer.names.classes import is_module
from amplint.infer.state.facts import Kind, Mismatch
from amplint.infer.state.operand import Operand
from amplint.infer.state.record import decider
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import memories
from amplint.infer.torch_model.autocast import switched_off
from amplint.infer.torch_model.default_dtype import may_be_low
from amplint.infer.torch_model.elsewhere import brought_lanes
from amplint.infer.torch_model.provenance import (
    autocast_made,
    beside_its_own,
    came_with,
    held_by_module,
    holds_nothing,
    is_upcast,
    made_in,
    was_added,
)
from amplint.infer.torch_model.torch_ops import LOWER, NUMPY, Op, find_op
from amplint.infer.torch_model.unknown_mates import indexes_by_array, into_rows

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from amplint.infer.state.activation import Activation
    from amplint.infer.state.frame import Frame
    from amplint.source import Span

ATTENTION_OPS = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
)
_WRITES = ("put", "index_put", "index_add", "index_copy", "index_reduce", "scatter", "scatter_add", "scatter_reduce")
INDEX_WRITES = frozenset(
    f"torch.{of}{name}{end}" for of in ("", "Tensor.") for name in (*_WRITES, "masked_scatter") for end in ("", "_")
)


def check(
    frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand], out: bool, *, cited: bool = False
) -> tuple[int, ...]:
    """Compare the operands of a strict operation as torch would see them; record what disagrees.

    ``operands`` carry the dtypes after autocast's casts. ``cited``: it is an attention kernel of another library.
    Returns the scenarios in which nothing is known of the result: it fails, or would but for a tensor without elements
    that stands for none, or for what an object was constructed with. A constructor runs before its module is converted,
    so nothing in it disagrees yet.
    """
    if frame.making or frame.constructing is not None:
        return ()
    worst: dict[int, Strength] = {}
    chosen: tuple[Operand, Operand] | None = None
    best = Strength.NONE
    pairs = [pair for group in _groups(op, operands, out) for pair in combinations(group, 2)]
    compared = [(pair, compare(frame, *pair)) for pair in pairs]
    norms = product([o for o in operands if o.name == "input"], [o for o in operands if o.name in op.not_narrower])
    for pair, lanes in (*compared, *((pair, _narrowing(frame, pair)) for pair in norms)):
        top = max(lanes.values(), default=Strength.NONE)
        if top > best:
            best, chosen, worst = top, pair, lanes
    unmet: tuple[int, ...] = ()
    if chosen is not None:
        kind = Kind.ATTENTION if cited else _kind(frame, op, chosen, worst, out)
        disagreeing = _accepted(frame, kind, chosen, worst)
        unmet = tuple(n for n in disagreeing if any(holds_nothing(operand.value.origin, n) for operand in chosen))
        accepted = [lane for lane in disagreeing if lane not in unmet]
        if accepted and any(came_with(frame, operand) for operand in chosen):
            accepted = [lane for lane in accepted if not any(was_added(operand, lane) for operand in chosen)]
            if not accepted:
                return tuple(disagreeing)
        if accepted:
            strengths = tuple(worst[lane] for lane in accepted)
            found = Mismatch(node, op.name, kind, chosen, tuple(operands), tuple(accepted), strengths, cited=cited)
            record(frame, found)
            return (*found.lanes, *unmet)
    _note_callers(frame, node, op, operands)
    apart = (*_complex_apart(frame, node, pairs), *_beside_float64(frame, node, pairs))
    return (*unmet, *_wide_parameters(frame, node, op, operands), *apart)


def record(frame: Frame, found: Mismatch) -> None:
    """Note operands that disagree where they do so in the checked file, or elsewhere for what that file hands over."""
    session = frame.session
    if found.raises and not (found.cited or any(map(_may_be_none, found.pair))):
        lanes = zip(found.lanes, found.strengths, strict=True) if found.strengths else ()
        frame.raises(lane for lane, found_strength in lanes if found_strength >= Strength.ASSUMED)
    if any(session.scenarios[lane].keeps_explicit for lane in found.lanes):
        found = replace(found, low_default=may_be_low(session, frame.namespace))
    if session.recorder.concerns(frame):
        led = found.kind is Kind.AUTOCAST_EXIT and frame.region is not None
        session.recorder.happened(frame, replace(found, led_by=_from_region(frame)) if led else found)
    elif frame.left is not None and found.raises and not found.cited:
        caller, call = frame.left
        brought = brought_lanes(frame, caller, found)
        if brought and isinstance(call, ast.Call):
            place = frame.namespace.source.span(found.node)
            there = Cause(frame.namespace.path, place, f"{found.op.rsplit('.', 1)[-1]} gets both")
            bare = {id(operand): replace(operand, node=None) for operand in (*found.pair, *found.operands)}
            pair = bare[id(found.pair[0])], bare[id(found.pair[1])]
            operands = tuple(bare[id(operand)] for operand in found.operands)
            found = replace(found, node=call, pair=pair, operands=operands, elsewhere=there, brought=brought)
            session.recorder.happened(caller, found)
            for inner in _between(frame, caller):
                inner.brings = True
        elif all(strength >= Strength.PATH for strength in found.strengths):
            session.recorder.happened(frame, found)


def _may_be_none(operand: Operand) -> bool:
    """Whether an operand may be no tensor, or none of that dtype."""
    return operand.value.maybe or operand.value.unsure or operand.value.optional


def _between(frame: Frame, caller: Frame) -> Iterator[Activation]:
    """An activation and those that led to it from one of the checked file."""
    inner: Activation | None = frame
    while inner is not None and inner is not caller:
        yield inner
        inner = inner.caller


def _from_region(frame: Frame) -> ast.expr | None:
    """The call by which the function that runs was reached from the region around it, if that stands in another one of
    the checked file."""
    outermost = frame
    while outermost.caller is not None and outermost.caller.region is frame.region and not _is_decorated(outermost):
        outermost = outermost.caller
    return outermost.calling if outermost is not frame and outermost.namespace.own else None


def _is_decorated(frame: Frame) -> bool:
    """Whether the region around is a decorator of the function that runs."""
    decorators = getattr(frame.definition, "decorator_list", ())
    return frame.region is not None and frame.region.node in decorators


def _may_be_wide(frame: Frame, gradient: Operand, lane: int) -> bool:
    """Whether forward combined, on every path, what autocast lowered with what some object was constructed with: nobody
    knows the dtype of that, and the output is as wide."""
    return not gradient.value.dtypes[lane].certain & LOW and came_with(frame, gradient)


def compare(frame: Frame, left: Operand, right: Operand) -> dict[int, Strength]:
    """How surely two operands differ, by lane of the scenarios in which they do.

    What also differs in the float32 control is no precision hazard, unless autocast made it. So it is of float64 beside
    what autocast lowers, of whatever dtype that is without: it leaves float64 as it is. What meets a tensor of the
    host's memory lies there too, where the autocast of another device made nothing; in methods of modules, what they
    make on no device may follow the default one.
    """
    apart = frame.session.device != "cpu" and bool(left.value.host) is not bool(right.value.host)
    apart = apart and 0 not in (left.value.dim, right.value.dim) and not is_module(frame.owner)
    gradient = left if left.value.gradient else right if right.value.gradient else None
    lanes: dict[int, Strength] = {}
    for number, (a, b) in enumerate(zip(left.value.dtypes, right.value.dtypes, strict=True)):
        if not frame.live >> number & 1:
            continue
        if apart and (autocast_made(left, number) or autocast_made(right, number)):
            continue
        if frame.autocast[number].low and (a.mask == FLOAT64) is not (b.mask == FLOAT64):
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


def _narrowing(frame: Frame, pair: tuple[Operand, Operand]) -> dict[int, Strength]:
    """How surely the parameter of a norm is narrower than its input, by lane: the kernels read it in the input's dtype,
    or, for low precision, in float32.

    Likely at the most: who casts up before a norm often keeps its weights in float32 too, where nobody sees it here.
    """
    given, parameter = pair
    wide = [lane.wide or (lane.exact and not lane.mask & LOW) for lane in given.value.dtypes]
    return {
        lane: found
        for lane, found in compare(frame, given, parameter).items()
        if wide[lane] and not parameter.value.dtypes[lane].mask & ~LOW
    }


def _wide_parameters(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> tuple[int, ...]:
    """Note a norm that gets low precision beside float32 parameters, where the device's kernel does not take them.

    Where that is no finding, since callers decide what it gets, nothing behind it is reached all the same.
    """
    given = next((o.value for o in operands if o.name == "input"), None)
    held = [o.value for o in operands if o.name in op.as_wide]
    if given is None or not held or any(value.maybe or value.unsure or value.optional for value in (given, *held)):
        return ()
    lanes = tuple(
        number
        for number, lane in enumerate(given.dtypes)
        if frame.live >> number & 1
        and lane.exact
        and lane.mask & LOW
        and any(value.dtypes[number].exact and value.dtypes[number].mask == FLOAT32 for value in held)
    )
    if lanes:
        frame.refuse(node, lanes)
    return lanes


def _complex_apart(frame: Frame, node: ast.expr | ast.stmt, pairs: list[tuple[Operand, Operand]]) -> tuple[int, ...]:
    """Note complex operands that disagree, such as a transform of float16 beside weights that no conversion changes:
    torch raises there as of floating ones, and nothing behind it is reached."""
    lanes = tuple(
        number
        for number in range(len(frame.session.scenarios))
        if frame.live >> number & 1 and any(_are_complex_apart(pair, number) for pair in pairs)
    )
    if lanes:
        frame.refuse(node, lanes)
    return lanes


def _are_complex_apart(pair: tuple[Operand, Operand], number: int) -> bool:
    if any(map(_may_be_none, pair)):
        return False
    left, right = (operand.value.dtypes[number] for operand in pair)
    return left.exact and right.exact and category(left.mask) == category(right.mask) == 3 and left.mask != right.mask


def _beside_float64(frame: Frame, node: ast.expr | ast.stmt, pairs: list[tuple[Operand, Operand]]) -> tuple[int, ...]:
    """Note float64, which the code casts to, beside what it forces to be something else in the float32 control too, as
    a layer's weight: nothing behind them is reached, if not all of a model is in float64, where autocast makes no low
    precision. What a module holds in float64 may be converted with it."""
    forced = [
        (left, right)
        for left, right in pairs
        if strength(left.value.dtypes[0], right.value.dtypes[0]) is Strength.FORCED
        and not (_may_be_none(left) or _may_be_none(right) or autocast_made(left, 0) or autocast_made(right, 0))
        and any(o.value.dtypes[0].mask == FLOAT64 and not held_by_module(o, 0) for o in (left, right))
    ]
    lanes = tuple(
        number
        for number in range(frame.session.lanes)
        if frame.live >> number & 1
        and any(strength(a.value.dtypes[number], b.value.dtypes[number]) is Strength.FORCED for a, b in forced)
    )
    if lanes:
        frame.refuse(node, lanes)
    return lanes


def _note_callers(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> None:
    """Note operands of which callers decide each dtype by itself, in a scenario where parameters differ: a mistake only
    where the file casts the one to the dtype of the other elsewhere, which is known when all of it was read."""
    recorder = frame.session.recorder
    if not recorder.concerns(frame):
        return
    for number, scenario in enumerate(frame.session.scenarios):
        if not scenario.keeps_explicit or not frame.live >> number & 1 or frame.autocast[number].low:
            continue
        for group in _groups(op, operands, out=False):
            for left, right in combinations(group, 2):
                sides = [decider(o.value.origin, o.value.dtypes[number]) for o in (left, right)]
                a, b = sides
                if a is None or b is None or a is b or not any(isinstance(side, Symbol) for side in sides):
                    continue
                if any(came_with(frame, operand) for operand in (left, right)):
                    continue
                beside = next((span for o in group if (span := _cast_parameter(frame, o)) is not None), None)
                aligned = beside if isinstance(a, int) is not isinstance(b, int) else None
                pair = (left, right)
                found = Mismatch(node, op.name, Kind.MIXED, pair, tuple(operands), (number,), aligned=aligned)
                if aligned is not None:
                    recorder.happened(frame, found)
                else:
                    recorder.callers_pair(frame, (a, b), found)
                return


def _cast_parameter(frame: Frame, operand: Operand) -> Span | None:
    """Where a parameter was cast to the dtype of something else, if that is what an operand is."""
    origin = operand.value.origin
    before = frame.session.recorder.cast_of(origin.node) if origin is not None and not origin.cast else None
    if origin is None or before is None or before.origin is None or not before.origin.parameter:
        return None
    return origin.span


def lacks_kernel(
    frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand], bound: dict[str, Value]
) -> tuple[int, ...]:
    """The live scenarios, by number, in which the device has no kernel for the dtype that the first operand surely has.

    ``operands`` carry the dtypes after autocast's casts. What lies in the host's memory is the host's to compute. What
    autocast made lies on the device, where ``.numpy()`` raises for every dtype.
    """
    missing = _missing(frame, op, operands, bound)
    if not missing:
        return ()
    device = "cpu" if memories.on_host(operands) else frame.session.device
    if op.name == NUMPY and device != "cpu" and "force" not in bound:
        first = operands[0]
        made = tuple(n for n, lane in enumerate(first.value.dtypes) if lane.exact and autocast_made(first, n))
        frame.refuse(node, made)
    return refuse(frame, node, _there(operands[0]), missing)


def lacked_kernel(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> None:
    """Note an operation for which a release that the file may well be run with has no kernel, though the newest has:
    what comes behind it is not reached there."""
    device = "cpu" if memories.on_host(operands) else frame.session.device
    lacked = op.lacked_from(device, frame.session.oldest_run) if operands else {}
    if lacked:
        refuse(frame, node, _there(operands[0]), {BITS[name] for name in lacked})


def _there(operand: Operand) -> Tensor:
    """The tensor that an operation is of: None in its place raises as well."""
    return replace(operand.value, optional=False) if operand.value.optional else operand.value


def with_kernel(frame: Frame, op: Op, operands: list[Operand], bound: dict[str, Value]) -> list[Operand]:
    """The operands where the device computes the operation: the first has none of the dtypes for which it raises."""
    missing = _missing(frame, op, operands, bound)
    gone = sum(missing)
    if not any(lane.mask & gone and lane.mask & ~gone for operand in operands[:1] for lane in operand.value.dtypes):
        return operands
    first, *others = operands
    lanes = (
        lane._replace(mask=lane.mask & ~gone, symbol=None) if lane.mask & gone and lane.mask & ~gone else lane
        for lane in first.value.dtypes
    )
    return [replace(first, value=replace(first.value, dtypes=tuple(lanes))), *others]


def _missing(frame: Frame, op: Op, operands: list[Operand], bound: dict[str, Value]) -> frozenset[int]:
    """The dtypes of the first operand for which an operation has no kernel where it is computed."""
    device = "cpu" if memories.on_host(operands) else frame.session.device
    return frozenset(BITS[name] for name in op.lacking(device, bound)) if operands else frozenset()


def refuse(frame: Frame, node: ast.expr | ast.stmt, tensor: Tensor, dtypes: Container[int]) -> tuple[int, ...]:
    """Note the live scenarios, by number, in which a tensor surely has one of the dtypes for which an operation raises.

    A constructor runs before anything converts the module.
    """
    if tensor.maybe or tensor.unsure or tensor.optional or frame.making or frame.constructing is not None:
        return ()
    lanes = tuple(
        n for n, lane in enumerate(tensor.dtypes) if frame.live >> n & 1 and lane.exact and lane.mask in dtypes
    )
    if lanes:
        frame.refuse(node, lanes)
    return lanes


def _groups(op: Op, operands: list[Operand], out: bool) -> list[list[Operand]]:
    by_name: dict[str, list[Operand]] = {}
    for operand in operands:
        if operand.value.dim != 0 or operand.name not in op.bare:
            by_name.setdefault(operand.name, []).append(operand)
    groups = []
    for names in op.strict:
        members = [operand for name in names for operand in by_name.get(name.rstrip("*"), ())]
        if out:
            members += by_name.get("out", [])
        groups.append(members)
    return groups


def _kind(frame: Frame, op: Op, pair: tuple[Operand, Operand], lanes: dict[int, Strength], out: bool) -> Kind:
    if frame.backward and (pair[0].value.gradient or pair[1].value.gradient):
        return Kind.BACKWARD
    if op.name in ATTENTION_OPS:
        return Kind.ATTENTION
    if op.name in INDEX_WRITES:
        return Kind.INDEX_WRITE
    lane = max(lanes, key=lambda number: lanes[number])
    ambient_on = any(frame.autocast[number].on for number in lanes)
    if is_matmul_variant(op, out) and ambient_on:
        return Kind.OUT_VARIANT
    made = made_in(pair, lane)
    if LOWER in op.policy.values() and made is None and any(is_upcast(operand.value, lane) for operand in pair):
        return Kind.UPCAST
    if any(switched_off(frame, number) for number in lanes):
        return Kind.AUTOCAST_EXIT
    if is_matmul_variant(op, out) and not any(strong >= Strength.PATH for strong in lanes.values()):
        return Kind.OUT_VARIANT
    return Kind.MIXED if made is None else Kind.TABLE if made.fixed else Kind.CONSTANT


def is_matmul_variant(op: Op, out: bool) -> bool:
    """A matmul-family operation in the ``out=`` or in-place form, where autocast does not act."""
    if out:
        return LOWER in op.policy.values()
    if not op.in_place:
        return False
    functional = find_op("torch." + op.name.rsplit(".", 1)[1].rstrip("_"))
    return functional is not None and LOWER in functional.policy.values()


def _accepted(frame: Frame, kind: Kind, pair: tuple[Operand, Operand], lanes: dict[int, Strength]) -> list[int]:
    """The scenarios that are worth a finding of this kind."""
    accepted = []
    for number, found in sorted(lanes.items()):
        if kind is Kind.AUTOCAST_EXIT:
            enough = found >= Strength.CALLER and switched_off(frame, number)
        elif kind is Kind.OUT_VARIANT:
            lowered = any(operand.value.dtypes[number].certain & LOW for operand in pair)
            enough = frame.autocast[number].on and (found >= Strength.CALLER or lowered)
        elif kind is Kind.INDEX_WRITE:
            lowered = any(autocast_made(operand, number) for operand in pair)
            enough = frame.autocast[number].on and found >= Strength.CALLER and lowered
        elif kind is Kind.MIXED:
            enough = frame.autocast[number].on and frame.in_module and beside_its_own(pair, number)
        else:
            enough = False
        if enough or found >= Strength.PATH:
            accepted.append(number)
    return accepted


def index_write(frame: Frame, target: ast.Subscript, container: Tensor, index: Value, value: Value) -> None:
    """``container[index] = value``: casts silently where the index is a slice or a number, raises for a tensor."""
    op = find_op("torch.Tensor.index_put_")
    source = next((option for option in options_of(value) if isinstance(option, Tensor)), None)
    if op is None or container.maybe or not (_indexes_by_tensor(index) or indexes_by_array(target.slice)):
        return
    statement = frame.statement
    memories.meet(frame, statement or target, (container, value))
    into_rows(frame, statement or target, container, value)
    if source is None or source.maybe or source.dim == 0:
        return
    written = statement.value if isinstance(statement, ast.Assign) and target in statement.targets else None
    name = next((name for name in op.tensors if name != "self"), "values")
    operands = [Operand("self", target.value, container), Operand(name, written, source)]
    check(frame, statement or target, op, operands, out=False)


def _indexes_by_tensor(index: Value) -> bool:
    """Whether an index holds a mask, a list of items, or a tensor with dimensions: an integer one without is a number
    to torch, and so may be one of which neither is known."""
    if isinstance(index, Sequence) and index.mutable:
        return isinstance(element := index.items[0] if index.items else index.element, (Number, Tensor)) or (
            isinstance(element, Const) and isinstance(element.value, int)
        )
    if isinstance(index, Sequence):
        return any(map(_indexes_by_tensor, index.items or ()))
    if not isinstance(index, Tensor) or index.maybe or index.dim == 0:
        return False
    return index.dim is not None or any(lane.known and lane.mask & (BOOL | INTEGERS) == BOOL for lane in index.dtypes)
