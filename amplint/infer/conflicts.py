"""Operands that disagree: which operation, in which scenarios, how sure, and why.

torch raises where operands of a strict operation differ in dtype after autocast had its say. What also fails in the
float32 control is no precision hazard (or a mistake of the inference) and is dropped.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from amplint.finding import Certainty
from amplint.infer.default_dtype import may_be_low
from amplint.infer.dtypes import AUTOCASTABLE, FLOAT32, FLOATS, LOW, Lane, Symbol, bits_of, names_of
from amplint.infer.elsewhere import brought_lanes, seen_from
from amplint.infer.facts import Conflict, Kind, MadeOperand, Operand
from amplint.infer.frame import Frame, options_of
from amplint.infer.origins import causes, deciding, lineage
from amplint.infer.record import decider
from amplint.infer.torch_ops import LOWER, Op, find_op
from amplint.infer.values import Builtin, Const, Made, Number, Sequence, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.arguments import Arguments
    from amplint.infer.values import Origin
    from amplint.source import Span

ATTENTION_OPS = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
)
INDEX_WRITES = frozenset(
    f"torch.Tensor.{name}"
    for name in [
        "index_put_",
        "index_put",
        "index_add_",
        "index_add",
        "index_copy_",
        "index_copy",
        "index_reduce_",
        "index_reduce",
        "scatter_",
        "scatter",
        "scatter_add_",
        "scatter_add",
        "scatter_reduce_",
        "scatter_reduce",
        "masked_scatter_",
        "masked_scatter",
        "put_",
        "put",
    ]
) | frozenset(
    f"torch.{name}"
    for name in [
        "index_put",
        "index_put_",
        "index_add",
        "index_copy",
        "index_reduce",
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "masked_scatter",
        "put",
    ]
)
MAX_ORIGINS = 200
"""Places that are looked back through for what made a dtype."""


class Strength(IntEnum):
    """How surely two dtypes differ in one scenario."""

    NONE = 0
    CALLERS = 1
    """Both follow callers, who may pass what differs."""
    CALLER = 2
    """One is fixed, and a caller may pass what differs from it."""
    PATH = 3
    """They differ on one of the paths that lead here."""
    ASSUMED = 4
    """They differ for what a caller is taken to pass in the scenario."""
    FORCED = 5
    """The code forces them to differ."""


def strength(a: Lane, b: Lane) -> Strength:
    """How surely two operands' dtypes differ, going by what is known of each."""
    if (a.symbol is not None and a.symbol is b.symbol) or not a.mask or not b.mask:
        return Strength.NONE
    if (a.mask | b.mask) & ~FLOATS:
        return Strength.NONE
    if not a.mask & b.mask:
        if a.open or b.open:
            return Strength.PATH
        return Strength.ASSUMED if a.assumed or b.assumed else Strength.FORCED
    if a.mask == b.mask and not a.mask & (a.mask - 1):
        return Strength.NONE
    if (b.exact and a.certain & ~b.mask) or (a.exact and b.certain & ~a.mask):
        return Strength.PATH
    follows_caller = (a.assumed and not a.exact) or (b.assumed and not b.exact)
    if a.exact or b.exact:
        return Strength.CALLER if follows_caller else Strength.PATH
    return Strength.CALLERS if follows_caller else Strength.NONE


def gradient_strength(gradient: Lane, other: Lane) -> Strength:
    """How surely the gradient of a low-precision output meets another dtype.

    The gradient has the dtype that forward returned; where autocast lowered that on any path while the other operand
    follows a caller or stayed wide, they differ.
    """
    if gradient.symbol is not None and gradient.symbol is other.symbol:
        return Strength.NONE
    if not gradient.mask & LOW or not other.mask or other.mask & ~FLOATS:
        return Strength.NONE
    if (
        other.mask & ~gradient.mask
        or (other.assumed and not other.exact)
        or (gradient.mask & ~other.mask and other.exact)
    ):
        return Strength.PATH
    return Strength.NONE


def check(
    frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand], out: bool, *, cited: bool = False
) -> dict[int, Strength]:
    """Compare the operands of a strict operation as torch would see them; record what disagrees.

    ``operands`` carry the dtypes after autocast's casts. ``cited``: it is an attention kernel of another library.
    Returns the scenarios that fail, by lane. A constructor runs before its module is converted, so nothing in it
    disagrees yet.
    """
    if frame.constructing is not None:
        return {}
    worst: dict[int, Strength] = {}
    chosen: tuple[Operand, Operand] | None = None
    best = Strength.NONE
    for group in _groups(op, operands, out):
        for index, left in enumerate(group):
            for right in group[index + 1 :]:
                lanes = _compare(frame, left, right)
                top = max(lanes.values(), default=Strength.NONE)
                if top > best:
                    best, chosen, worst = top, (left, right), lanes
    if chosen is None:
        _note_callers(frame, node, op, operands)
        return {}
    kind = Kind.ATTENTION if cited else _kind(frame, op, operands, chosen, worst, out)
    accepted = _accepted(frame, kind, chosen, worst)
    if not accepted:
        _note_callers(frame, node, op, operands)
        return {}
    added = [lane for lane in accepted if any(_was_added(operand, lane) for operand in chosen)]
    if added and any(_came_with(frame, operand) for operand in chosen):
        accepted = [lane for lane in accepted if lane not in added]
        if not accepted:
            return {}
    failing = {lane: worst[lane] for lane in accepted}
    by_model = [lane for lane in accepted if any(_follows_default(frame, operand, lane) for operand in chosen)]
    accepted = [lane for lane in accepted if lane not in by_model] or accepted
    forced = [lane for lane in accepted if worst[lane] is Strength.FORCED]
    sure = forced or [lane for lane in accepted if worst[lane] is Strength.ASSUMED] or accepted
    certainty = Certainty.PROVEN if forced and not cited else _certainty(kind, chosen, sure[0], worst[sure[0]])
    if certainty is Certainty.PROVEN and (sure[0] in added or sure[0] in by_model):
        certainty = Certainty.LIKELY
    if _only_by_default(frame, sure) and not added and not may_be_low(frame.session, frame.namespace):
        certainty = Certainty.POSSIBLE
    _record(frame, node, op.name, kind, chosen, operands, sure, certainty=certainty, raises=True, cited=cited)
    return failing


def _only_by_default(frame: Frame, lanes: list[int]) -> bool:
    """Whether operands differ only where modules are built under a default dtype, and keep what is made explicitly.

    Never where nothing else was asked for.
    """
    scenarios = frame.session.scenarios
    other = any(not scenario.keeps_explicit for scenario in scenarios[1:])
    return other and all(scenarios[lane].keeps_explicit for lane in lanes)


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
            for index, left in enumerate(group):
                for right in group[index + 1 :]:
                    sides = [decider(o.value.origin, o.value.dtypes[number]) for o in (left, right)]
                    a, b = sides
                    if a is None or b is None or a is b or not any(isinstance(side, Symbol) for side in sides):
                        continue
                    if any(_came_with(frame, operand) for operand in (left, right)):
                        continue
                    conflict = _conflict(frame, node, op.name, Kind.MIXED, (left, right), operands, [number])
                    beside = next((span for o in group if (span := _cast_parameter(frame, o)) is not None), None)
                    if beside is not None and isinstance(a, int) is not isinstance(b, int):
                        recorder.conflict(frame, replace(conflict, aligned=beside))
                    else:
                        recorder.callers_pair(frame, number, (a, b), conflict)
                    return


def _cast_parameter(frame: Frame, operand: Operand) -> Span | None:
    """Where a parameter was cast to the dtype of something else, if that is what an operand is."""
    origin = operand.value.origin
    before = frame.session.recorder.cast_of(origin.node) if origin is not None and not origin.cast else None
    if origin is None or before is None or before.origin is None or not before.origin.parameter:
        return None
    return origin.span


def handed_over(frame: Frame, node: ast.expr, name: str, arguments: Arguments) -> None:
    """Record activations of different dtypes that are handed to something that autocast does not know: a Function, or
    another library. Which dtypes that takes is not known here; parameters may well be meant to stay float32."""
    if frame.constructing is not None or not frame.session.recorder.concerns(frame):
        return
    operands = [
        Operand(f"argument {number + 1}", arguments.nodes.get(number), value)
        for number, value in enumerate(arguments.positional)
        if isinstance(value, Tensor) and not value.leaf and not value.maybe and value.dim != 0
    ]
    for index, left in enumerate(operands):
        for right in operands[index + 1 :]:
            found = _compare(frame, left, right)
            lanes = [n for n, how in found.items() if how is Strength.FORCED and frame.autocast[n].on]
            if lanes and not any(_is_upcast(operand.value, lanes[0]) for operand in (left, right)):
                kind = Kind.EXTENSION
                likely = Certainty.LIKELY
                _record(
                    frame, node, name, kind, (left, right), operands, lanes, certainty=likely, raises=True, cited=True
                )
                return


def too_wide(frame: Frame, node: ast.expr, name: str, operands: list[Operand]) -> None:
    """Record an attention kernel that takes float16 and bfloat16 alone and gets float32, though the program runs in low
    precision: by what the code does itself, whatever its callers pass."""
    for operand in operands:
        lanes = []
        for number, lane in enumerate(operand.value.dtypes):
            scenario = frame.session.scenarios[number]
            low = frame.autocast[number].low or scenario.inputs != "float32"
            if low and frame.live >> number & 1 and lane == Lane(FLOAT32):
                lanes.append(number)
        if lanes:
            _record(
                frame,
                node,
                name,
                Kind.ATTENTION,
                (operand, operand),
                operands,
                lanes,
                certainty=Certainty.LIKELY,
                raises=True,
                cited=True,
            )
            return


def _certainty(kind: Kind, pair: tuple[Operand, Operand], lane: int, found: Strength) -> Certainty:
    """Whether dtypes that differ only on some path are worth saying.

    Operands that merely may differ are only possible: the paths that make them differ may not go together. Where the
    code changes the dtype itself on the way (attention after a norm, a region left, a gradient), one path is enough;
    but not a path that also decides whether the operand exists. One is enough too where a constant comes in on it and
    the other operand has one dtype whichever way was taken.
    """
    if found is not Strength.PATH:
        return Certainty.LIKELY
    if any(operand.value.optional for operand in pair):
        return Certainty.POSSIBLE
    if kind in (Kind.CONSTANT, Kind.TABLE):
        made = made_in(pair, lane)
        others = [operand.value.dtypes[lane] for operand in pair if made is None or operand is not made.operand]
        return Certainty.LIKELY if all(other.exact for other in others) else Certainty.POSSIBLE
    return Certainty.POSSIBLE if kind in (Kind.MIXED, Kind.UPCAST) else Certainty.LIKELY


def _groups(op: Op, operands: list[Operand], out: bool) -> list[list[Operand]]:
    by_name: dict[str, list[Operand]] = {}
    for operand in operands:
        by_name.setdefault(operand.name, []).append(operand)
    groups = []
    for names in op.strict:
        members = [operand for name in names for operand in by_name.get(name.rstrip("*"), ())]
        if out:
            members += by_name.get("out", [])
        groups.append(members)
    return groups


def _compare(frame: Frame, left: Operand, right: Operand) -> dict[int, Strength]:
    gradient = left if left.value.gradient else right if right.value.gradient else None
    lanes: dict[int, Strength] = {}
    for number, (a, b) in enumerate(zip(left.value.dtypes, right.value.dtypes, strict=True)):
        if not frame.live >> number & 1:
            continue
        found = strength(a, b)
        if gradient is not None and frame.backward and left.value.gradient != right.value.gradient:
            of_gradient = gradient_strength(*((a, b) if gradient is left else (b, a)))
            found = max(found, of_gradient if of_gradient and _autocast_made(gradient, number) else Strength.NONE)
        if found:
            lanes[number] = found
    if lanes.pop(0, Strength.NONE) >= Strength.PATH and not _autocast_made(left, 0) and not _autocast_made(right, 0):
        return {}
    return lanes


def _autocast_made(operand: Operand, lane: int) -> bool:
    """Whether autocast, on some path, made an operand low precision in a scenario."""
    return any(o.autocast >> lane & 1 and bool(o.dtypes[lane].mask & LOW) for o in _behind(operand))


def _was_added(operand: Operand, lane: int) -> bool:
    """Whether a parameter put beside a layer that was there before is what made an operand float32 in a scenario."""
    return any(o.made is Made.ADDED and o.dtypes[lane].mask == FLOAT32 for o in _behind(operand))


def _follows_default(frame: Frame, operand: Operand, lane: int) -> bool:
    """Whether an operand is what a plain attribute keeps of torch's default dtype, where that may be the model's: a
    model whose parameters keep explicit dtypes is mostly constructed under a default dtype of its own."""
    if not frame.session.scenarios[lane].keeps_explicit or operand.value.explicit:
        return False
    if operand.value.dtypes[lane].mask != FLOAT32 or any(o.cast or o.placed for o in _behind(operand)):
        return False
    return any(place.kept for place in lineage(operand.value.origin, lane))


def _came_with(frame: Frame, operand: Operand) -> bool:
    """Whether a constructor was given something that an operand's dtype depends on: it may be of the same making."""
    return any(id(origin.node) in frame.session.given for origin in _behind(operand))


def _behind(operand: Operand) -> Iterator[Origin]:
    """Every place that an operand's dtype depends on, on any path."""
    pending = [operand.value.origin]
    seen: set[int] = set()
    while pending and len(seen) < MAX_ORIGINS:
        origin = pending.pop()
        if origin is None or id(origin) in seen:
            continue
        seen.add(id(origin))
        yield origin
        pending.extend(origin.parents)


def _kind(
    frame: Frame, op: Op, operands: list[Operand], pair: tuple[Operand, Operand], lanes: dict[int, Strength], out: bool
) -> Kind:
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
    if LOWER in op.policy.values() and made is None and any(_is_upcast(operand.value, lane) for operand in pair):
        return Kind.UPCAST
    if any(_left_autocast(frame, number) for number in lanes):
        return Kind.AUTOCAST_EXIT
    if is_matmul_variant(op, out) and not any(strong >= Strength.PATH for strong in lanes.values()):
        return Kind.OUT_VARIANT
    return Kind.MIXED if made is None else Kind.TABLE if made.fixed else Kind.CONSTANT


def made_in(pair: tuple[Operand, Operand], lane: int) -> MadeOperand | None:
    """The operand, of two, that got its dtype where it was made, and from no other tensor.

    A parameter is its module's own affair, and what a caller passes the caller's.
    """
    for operand in pair:
        places = list(lineage(operand.value.origin, lane))
        if not places or operand.value.leaf or any(place.placed and not place.kept for place in places):
            continue
        maker = places[-1]
        if maker.made is not None and not maker.dtypes[lane].mask & LOW:
            where = next((place for place in places if place.kept), None)
            kept: Literal["buffer", "attribute"] | None = None
            if where is not None:
                kept = "buffer" if where.placed else "attribute"
            return MadeOperand(operand, maker, kept, kept is not None or maker.made is Made.WRITTEN)
    return None


def is_matmul_variant(op: Op, out: bool) -> bool:
    """A matmul-family operation in the ``out=`` or in-place form, where autocast does not act."""
    if out:
        return LOWER in op.policy.values()
    if not op.in_place:
        return False
    functional = find_op("torch." + op.name.rsplit(".", 1)[1].rstrip("_"))
    return functional is not None and LOWER in functional.policy.values()


def _left_autocast(frame: Frame, lane: int) -> bool:
    """Whether an enclosing region switched autocast off that was on around it."""
    region = frame.region
    return region is not None and not frame.autocast[lane].low and frame.session.ambient[lane].on


def _accepted(frame: Frame, kind: Kind, pair: tuple[Operand, Operand], lanes: dict[int, Strength]) -> list[int]:
    """The scenarios that are worth a finding of this kind."""
    accepted = []
    for number, found in sorted(lanes.items()):
        if kind is Kind.AUTOCAST_EXIT:
            enough = found >= Strength.CALLER and _left_autocast(frame, number)
        elif kind is Kind.OUT_VARIANT:
            lowered = any(_autocast_made(operand, number) for operand in pair)
            enough = frame.autocast[number].on and (found >= Strength.CALLER or lowered)
        elif kind is Kind.INDEX_WRITE:
            lowered = any(_autocast_made(operand, number) for operand in pair)
            enough = frame.autocast[number].on and found >= Strength.CALLER and lowered
        else:
            enough = False
        if enough or found >= Strength.PATH:
            accepted.append(number)
    return accepted


def undone_upcast(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> None:
    """Record operands cast to float32 in the source that the ambient autocast casts straight back down.

    ``operands`` carry the dtypes before autocast's casts. A region that the code opens itself around the operation was
    meant, and a cast variable may serve other operations; so the cast must be written in the operand, or be on all.
    """
    region = frame.region
    if region is not None and any(state.on for state in region.inside):
        return
    lanes = []
    pair: tuple[Operand, Operand] | None = None
    for number, ambient in enumerate(frame.autocast):
        if number == 0 or not ambient.on or not frame.live >> number & 1:
            continue
        floating = [o for o in operands if o.value.dtypes[number].mask & FLOATS]
        upcast = [o for o in floating if o.value.dtypes[number] == Lane(FLOAT32) and _is_upcast(o.value, number)]
        if upcast and (len(upcast) == len(floating) > 1 or any(_written_in(frame, o, number) for o in upcast)):
            lanes.append(number)
            others = [o for o in operands if o is not upcast[0]]
            pair = pair or (upcast[0], others[0] if others else upcast[0])
    if pair is not None:
        _record(
            frame, node, op.name, Kind.UNDONE_UPCAST, pair, operands, lanes, certainty=Certainty.LIKELY, raises=False
        )


def one_sided(frame: Frame, node: ast.expr | ast.stmt, op: Op, operands: list[Operand]) -> None:
    """Record arithmetic where autocast was switched off between an operand that the code casts up and one that it
    leaves as it is, though it comes in low precision or may: as much as the other one did before its cast."""
    for upcast in operands:
        for plain in operands:
            if upcast is plain or plain.value.maybe or plain.value.dim == 0:
                continue
            lanes = [n for n in range(frame.session.lanes) if frame.live >> n & 1 and _left_autocast(frame, n)]
            lanes = [n for n in lanes if _cast_alone(frame, upcast, plain, n)]
            if lanes:
                kind, pair = Kind.AUTOCAST_EXIT, (upcast, plain)
                _record(frame, node, op.name, kind, pair, operands, lanes, certainty=Certainty.LIKELY, raises=False)
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


def _is_upcast(tensor: Tensor, lane: int) -> bool:
    """Whether a written cast to float32 or float64, and not of integers, decided the dtype in a scenario."""
    origin = deciding(tensor.origin, lane, through_modules=False)
    if origin is None or not origin.cast or origin.made is Made.CONVERTED:
        return False
    return "float32" in names_of(origin.dtypes[lane].mask) or "float64" in names_of(origin.dtypes[lane].mask)


def _record(
    frame: Frame,
    node: ast.expr | ast.stmt,
    name: str,
    kind: Kind,
    pair: tuple[Operand, Operand],
    operands: list[Operand],
    lanes: list[int],
    *,
    certainty: Certainty,
    raises: bool,
    cited: bool = False,
) -> None:
    if frame.session.recorder.concerns(frame):
        conflict = _conflict(frame, node, name, kind, pair, operands, lanes)
        frame.session.recorder.conflict(frame, replace(conflict, certainty=certainty, raises=raises, cited=cited))
    elif frame.left is not None and raises and not cited and certainty is not Certainty.POSSIBLE:
        brought = brought_lanes(frame, frame.left[0], kind, pair, lanes)
        if brought and isinstance(frame.left[1], ast.Call):
            conflict = replace(_conflict(frame, node, name, kind, pair, operands, brought), certainty=certainty)
            frame.session.recorder.conflict(frame.left[0], seen_from(*frame.left, frame, conflict))


def _conflict(
    frame: Frame,
    node: ast.expr | ast.stmt,
    name: str,
    kind: Kind,
    pair: tuple[Operand, Operand],
    operands: list[Operand],
    lanes: list[int],
) -> Conflict:
    """A likely one that raises."""
    lane = lanes[0]
    left, right = pair
    left_dtype, right_dtype = _different_dtypes(left, right, lane)
    return Conflict(
        node=node,
        op=name,
        kind=kind,
        left=left,
        right=right,
        operands=tuple(operands),
        scenarios=tuple(frame.session.scenarios[number].name for number in lanes),
        left_dtype=left_dtype,
        right_dtype=right_dtype,
        certainty=Certainty.LIKELY,
        raises=True,
        causes=causes(frame.namespace.path, (left, right), lane),
        function=frame.function,
        culprit=_culprit(pair, kind, lane),
        made=made_in(pair, lane) if kind in (Kind.CONSTANT, Kind.TABLE) else None,
    )


def _culprit(pair: tuple[Operand, Operand], kind: Kind, lane: int) -> Span | None:
    """Where the operand that is out of place got its dtype: the cast, else the operand that is no parameter."""
    for operand in pair:
        if kind in (Kind.UPCAST, Kind.UNDONE_UPCAST) and not _is_upcast(operand.value, lane):
            continue
        if operand.value.leaf and kind not in (Kind.UPCAST, Kind.UNDONE_UPCAST):
            continue
        origin = deciding(operand.value.origin, lane)
        if origin is not None:
            return origin.span
    return None


def _different_dtypes(left: Operand, right: Operand, lane: int) -> tuple[str, str]:
    """A pair of different dtypes that the two operands can have; of several, one in which a gradient is low."""
    a, b = left.value.dtypes[lane], right.value.dtypes[lane]
    pairs = [(x, y) for x in bits_of(a.mask) for y in bits_of(b.mask) if x != y]
    if not pairs:
        return "/".join(names_of(a.mask)), "/".join(names_of(b.mask))
    if right.value.gradient:
        pairs.sort(key=lambda pair: not pair[1] & LOW)
    return names_of(pairs[0][0])[0], names_of(pairs[0][1])[0]


def index_write(frame: Frame, target: ast.Subscript, container: Tensor, index: Value, value: Value) -> None:
    """``container[index] = value``: casts silently where the index is a slice or a number, raises for a tensor."""
    op = find_op("torch.Tensor.index_put_")
    source = next((option for option in options_of(value) if isinstance(option, Tensor)), None)
    if op is None or source is None or source.maybe or container.maybe:
        return
    if not _indexes_by_tensor(index) or source.dim == 0:
        return
    statement = frame.statement
    written = statement.value if isinstance(statement, ast.Assign) and target in statement.targets else None
    name = next((name for name in op.tensors if name != "self"), "values")
    operands = [Operand("self", target.value, container), Operand(name, written, source)]
    check(frame, statement or target, op, operands, out=False)


def _indexes_by_tensor(index: Value) -> bool:
    if isinstance(index, Tensor):
        return not index.maybe and index.dim != 0
    if isinstance(index, Sequence) and index.items is not None:
        known = all(isinstance(i, (Tensor, Const, Number, Builtin)) for i in index.items)
        return known and any(isinstance(i, Tensor) and not i.maybe and i.dim != 0 for i in index.items)
    return False
