"""Operands of strict operations that disagree: of which kind, in which scenarios, and how sure that is.

torch raises where operands of a strict operation differ in dtype after autocast had its say. What also fails in the
float32 control is no precision hazard (or a mistake of the inference) and is dropped.
"""

from __future__ import annotations

import ast
from itertools import combinations, product
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import FLOAT32, LOW, Symbol
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import Builtin, Const, Number, Sequence, Tensor, Value
from amplint.infer.state.facts import Kind, Operand
from amplint.infer.state.record import decider
from amplint.infer.torch_model.autocast import switched_off
from amplint.infer.torch_model.default_dtype import may_be_low
from amplint.infer.torch_model.disagreement import Disagreement
from amplint.infer.torch_model.provenance import (
    autocast_made,
    beside_its_own,
    came_with,
    is_upcast,
    made_in,
    was_added,
)
from amplint.infer.torch_model.strength import Strength, compare
from amplint.infer.torch_model.torch_ops import LOWER, Op, find_op
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, Standing, holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.finding import Doubt
    from amplint.infer.state.frame import Frame
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
    pairs = [pair for group in _groups(op, operands, out) for pair in combinations(group, 2)]
    compared = [(pair, compare(frame, *pair)) for pair in pairs]
    norms = product([o for o in operands if o.name == "input"], [o for o in operands if o.name in op.not_narrower])
    for pair, lanes in (*compared, *((pair, _narrowing(frame, pair)) for pair in norms)):
        top = max(lanes.values(), default=Strength.NONE)
        if top > best:
            best, chosen, worst = top, pair, lanes
    if chosen is None:
        _note_callers(frame, node, op, operands)
        return {}
    kind = Kind.ATTENTION if cited else _kind(frame, op, operands, chosen, worst, out)
    accepted = _accepted(frame, kind, chosen, worst)
    if not accepted:
        _note_callers(frame, node, op, operands)
        return {}
    added = [lane for lane in accepted if any(was_added(operand, lane) for operand in chosen)]
    if added and any(came_with(frame, operand) for operand in chosen):
        accepted = [lane for lane in accepted if lane not in added]
        if not accepted:
            return {}
    forced = [lane for lane in accepted if worst[lane] is Strength.FORCED]
    sure = forced or [lane for lane in accepted if worst[lane] is Strength.ASSUMED] or accepted
    held = holding({doubts.UNKNOWN_ON_A_PATH: any(operand.value.unsure for operand in chosen)})
    if not forced:
        held += _doubts(frame, kind, chosen, sure[0], worst[sure[0]])
    if _only_by_default(frame, sure) and not added and not may_be_low(frame.session, frame.namespace):
        held.append(doubts.DEFAULT_UNSEEN)
    definite = all(worst[lane] >= Strength.ASSUMED for lane in sure)
    found = Disagreement(node, op.name, kind, chosen, tuple(operands), tuple(sure))
    found.record(frame, Standing(bool(forced) and not cited).doubted(*held), cited=cited, sure=definite)
    return {lane: worst[lane] for lane in accepted}


def _narrowing(frame: Frame, pair: tuple[Operand, Operand]) -> dict[int, Strength]:
    """How surely the parameter of a norm is narrower than its input, by lane: the kernels read it in the input's dtype,
    or, for low precision, in float32.
    """
    given, parameter = pair
    return {
        lane: found
        for lane, found in compare(frame, given, parameter).items()
        if given.value.dtypes[lane].exact
        and not given.value.dtypes[lane].mask & LOW
        and not parameter.value.dtypes[lane].mask & ~LOW
    }


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
                    if any(came_with(frame, operand) for operand in (left, right)):
                        continue
                    found = Disagreement(node, op.name, Kind.MIXED, (left, right), tuple(operands), (number,))
                    beside = next((span for o in group if (span := _cast_parameter(frame, o)) is not None), None)
                    if beside is not None and isinstance(a, int) is not isinstance(b, int):
                        recorder.conflict(frame, found.conflict(frame, ASSUMED, aligned=beside))
                    else:
                        recorder.callers_pair(frame, number, (a, b), found.conflict(frame, ASSUMED))
                    return


def _cast_parameter(frame: Frame, operand: Operand) -> Span | None:
    """Where a parameter was cast to the dtype of something else, if that is what an operand is."""
    origin = operand.value.origin
    before = frame.session.recorder.cast_of(origin.node) if origin is not None and not origin.cast else None
    if origin is None or before is None or before.origin is None or not before.origin.parameter:
        return None
    return origin.span


def _doubts(frame: Frame, kind: Kind, pair: tuple[Operand, Operand], lane: int, found: Strength) -> Iterator[Doubt]:
    """Why dtypes that differ for some callers, or on some path, may not be worth saying.

    Where the code changes the dtype itself on the way (attention after a norm, a region left, a gradient), or a
    constant comes in, one path is enough.
    """
    if kind is Kind.INDEX_WRITE and found is Strength.CALLER and _written_wide(frame, pair, lane):
        yield doubts.WIDE_DESTINATION
    if found is not Strength.PATH:
        return
    if kind is Kind.UPCAST or (kind is Kind.MIXED and not beside_its_own(pair, lane)):
        yield doubts.PATHS_APART


def _written_wide(frame: Frame, pair: tuple[Operand, Operand], lane: int) -> bool:
    """Whether autocast made rows float32 that go where a caller may have passed low precision.

    What a layer gets under autocast is mostly a residual stream, which stays float32, or what a norm gave.
    """
    destination, source = (operand.value.dtypes[lane] for operand in pair)
    return bool(frame.autocast[lane].low) and destination.assumed and source.mask == FLOAT32


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
            lowered = any(autocast_made(operand, number) for operand in pair)
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
