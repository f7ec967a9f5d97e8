"""Torch operations on abstract tensors: autocast's casts, the check of the operands, the dtype that comes out."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.infer import conflicts
from amplint.infer.dtypes import (
    AUTOCASTABLE,
    BITS,
    BOOL,
    FLOAT32,
    FLOATS,
    INTEGERS,
    NAMES,
    UNKNOWN_LANE,
    Dtypes,
    Lane,
    complex_of,
    real_of,
)
from amplint.infer.facts import Operand
from amplint.infer.frame import Frame, element_of, number_kind, options_of
from amplint.infer.torch_ops import BANNED, FP32, LOWER, PROMOTE, Op, find_op
from amplint.infer.values import (
    NONE,
    UNKNOWN,
    Const,
    DTypeValue,
    Number,
    Origin,
    Sequence,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from amplint.infer.arguments import Arguments

FP32_RESULT = "fp32_out"

_REDUCTIONS = frozenset(
    [
        "sum",
        "mean",
        "prod",
        "norm",
        "max",
        "min",
        "amax",
        "amin",
        "var",
        "std",
        "logsumexp",
        "median",
        "nanmean",
        "nansum",
        "all",
        "any",
        "argmax",
        "argmin",
        "count_nonzero",
        "dist",
    ]
)
_DIM_PARAMS = ("dim", "axis", "keepdim")


def apply_named(frame: Frame, name: str, arguments: Arguments, node: ast.expr | ast.stmt) -> Value:
    """Apply the operation of that name; unknown where the table has none."""
    op = find_op(name)
    return UNKNOWN if op is None else apply(frame, op, arguments, node)


def apply(frame: Frame, op: Op, arguments: Arguments, node: ast.expr | ast.stmt) -> Value:
    """Apply an operation: what autocast casts, whether the operands agree, what comes out."""
    bound = arguments.bind(op.params)
    op = op.for_call(bound, frame.session.device, frame.session.torch_version)
    frame.session.recorder.torch_call(frame, op.name, node, bound)
    operands = _operands(frame, op, arguments, bound)
    out = _destination(bound)
    wider = bound.get("out_dtype")
    if wider is not None and not (isinstance(wider, Const) and wider.value is None):
        op = _with_out_dtype(op, operands)
    policy = None if out is not None else op.policy.get(frame.session.device)
    if policy == LOWER or conflicts.is_matmul_variant(op, out is not None):
        frame.session.recorder.sensitive(frame, node, op.name)
    seen = _after_autocast(frame, operands, policy)
    if policy == LOWER:
        conflicts.undone_upcast(frame, node, op, operands)
    failing: dict[int, conflicts.Strength] = {}
    strict = op.strict or _strict_without(op, bound)
    if strict:
        op = replace(op, strict=strict)
        checked = list(seen)
        if out is not None and op.dtype_arg != "out_dtype":
            checked.append(Operand("out", arguments.node(None, "out"), out))
        failing = conflicts.check(frame, node, op, checked, out is not None)
    if out is not None:
        return out
    numbers = [number_kind(v) for name, v in bound.items() if name in op.tensors and isinstance(v, (Const, Number))]
    return _result(frame, op, bound, operands, seen, numbers, policy, failing, node)


def _destination(bound: dict[str, Value]) -> Tensor | None:
    """The tensor that ``out=`` names, marked where it may be None."""
    options = options_of(bound["out"]) if "out" in bound else ()
    for option in options:
        if isinstance(option, Tensor):
            return replace(option, optional=True) if len(options) > 1 else option
    return None


def _with_out_dtype(op: Op, operands: list[Operand]) -> Op:
    """A product with ``out_dtype=``: only the matrices must agree, and the result has the dtype asked for."""
    matrices = [o for o in operands if o.name not in ("input", "self") or len(operands) == 2]
    strict = tuple(tuple(name for name in group if any(o.name == name for o in matrices)) for group in op.strict)
    return replace(op, strict=strict, dtype_arg="out_dtype")


def _strict_without(op: Op, bound: dict[str, Value]) -> tuple[tuple[str, ...], ...]:
    """Groups that are strict unless some parameter is a floating tensor (class probabilities as a target)."""
    for name, groups in op.strict_without:
        value = bound.get(name)
        if isinstance(value, Tensor) and not any(lane.mask & FLOATS or not lane.mask for lane in value.dtypes):
            return groups
    return ()


def _operands(frame: Frame, op: Op, arguments: Arguments, bound: dict[str, Value]) -> list[Operand]:
    operands = []
    for name in op.tensors:
        listed = name.endswith("*")
        bare = name.rstrip("*")
        position = op.params.index(name) if name in op.params else op.params.index(bare) if bare in op.params else None
        value = bound.get(name, bound.get(bare))
        if value is None:
            continue
        expression = arguments.node(position, bare)
        if listed:
            operands.extend(_listed(frame, bare, value, expression, arguments, position))
        else:
            tensor = _tensor(frame, value)
            if tensor is not None:
                operands.append(Operand(bare, expression, tensor))
    return operands


def _listed(
    frame: Frame, name: str, value: Value, expression: ast.expr | None, arguments: Arguments, position: int | None
) -> list[Operand]:
    """The operands of a parameter that takes several tensors, as one list or as the rest of the arguments."""
    if isinstance(value, Sequence):
        if value.items is None:
            tensor = _tensor(frame, value.element)
            return [Operand(name, None, tensor)] if tensor is not None else []
        elements = expression.elts if isinstance(expression, (ast.List, ast.Tuple)) else []
        nodes = elements if len(elements) == len(value.items) else [None] * len(value.items)
        pairs = list(zip(nodes, value.items, strict=True))
    else:
        rest = arguments.positional[position:] if position is not None else [value]
        pairs = [(arguments.nodes.get((position or 0) + i), item) for i, item in enumerate(rest)]
    return [Operand(name, node, tensor) for node, item in pairs if (tensor := _tensor(frame, item)) is not None]


def _tensor(frame: Frame, value: Value) -> Tensor | None:
    """The tensor among a value's alternatives; an unknown value counts as a tensor of unknown dtype."""
    unknown = False
    options = options_of(value)
    for option in options:
        if isinstance(option, Tensor):
            return replace(option, optional=True) if len(options) > 1 and NONE in options else option
        if isinstance(option, Sequence):
            element = element_of(frame.session, option)
            if isinstance(element, Tensor):
                return element
        unknown = unknown or not isinstance(option, (Const, Number, DTypeValue))
    return Tensor(frame.session.unknown, None, maybe=True) if unknown else None


def _after_autocast(frame: Frame, operands: list[Operand], policy: str | None) -> list[Operand]:
    """The operands with the dtypes that the kernel sees."""
    if policy is None or not any(a.low for a in frame.autocast):
        return operands
    session = frame.session
    if policy == BANNED:
        refused = tuple(UNKNOWN_LANE for _ in frame.autocast)
        return [replace(o, value=replace(o.value, dtypes=_select_on(frame, refused, o.value.dtypes))) for o in operands]
    if policy == PROMOTE:
        wide = _widest(operands, session.unknown)
        return [
            replace(
                o, value=replace(o.value, dtypes=_select_on(frame, _promoted(o.value.dtypes, wide), o.value.dtypes))
            )
            for o in operands
        ]
    if policy == FP32_RESULT:
        return operands
    target = FLOAT32 if policy == FP32 else None
    sure = [any(_autocast_casts(o, lane) for o in operands) for lane in range(session.lanes)]
    return [
        replace(o, value=replace(o.value, dtypes=session.autocast_dtypes(o.value.dtypes, frame.autocast, target, sure)))
        for o in operands
    ]


def _autocast_casts(operand: Operand, lane: int) -> bool:
    dtype = operand.value.dtypes[lane]
    return bool(dtype.mask & AUTOCASTABLE) and not dtype.mask & ~AUTOCASTABLE


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


def _select_on(frame: Frame, on: Dtypes, off: Dtypes) -> Dtypes:
    return tuple(
        x if state.on else UNKNOWN_LANE if state.unknown else y
        for x, y, state in zip(on, off, frame.autocast, strict=True)
    )


def _result(
    frame: Frame,
    op: Op,
    bound: dict[str, Value],
    before: list[Operand],
    operands: list[Operand],
    numbers: list[str | None],
    policy: str | None,
    failing: dict[int, conflicts.Strength],
    node: ast.expr | ast.stmt,
) -> Value:
    if isinstance(op.result, tuple):
        items = [
            _one_result(frame, op, part, bound, before, operands, numbers, policy, failing, node) for part in op.result
        ]
        return Sequence(tuple(items))
    return _one_result(frame, op, op.result, bound, before, operands, numbers, policy, failing, node)


def _one_result(
    frame: Frame,
    op: Op,
    rule: str,
    bound: dict[str, Value],
    before: list[Operand],
    operands: list[Operand],
    numbers: list[str | None],
    policy: str | None,
    failing: dict[int, conflicts.Strength],
    node: ast.expr | ast.stmt,
) -> Value:
    if rule == "none":
        return UNKNOWN
    several = rule.endswith("*")
    rule = rule.rstrip("*")
    session = frame.session
    dim = result_dim(op, bound, operands, rule)
    dtypes = _dtypes_by_rule(frame, rule, operands, numbers)
    if policy == FP32_RESULT:
        dtypes = _select_on(frame, tuple(Lane(FLOAT32) if d.mask & AUTOCASTABLE else d for d in dtypes), dtypes)
    requested = bound.get(op.dtype_arg) if op.dtype_arg else None
    written = False
    if requested is not None and not (isinstance(requested, Const) and requested.value is None):
        dtypes = requested.dtypes if isinstance(requested, DTypeValue) else session.unknown
        written = isinstance(requested, DTypeValue) and requested.written
    if failing:
        dtypes = tuple(UNKNOWN_LANE if lane in failing else d for lane, d in enumerate(dtypes))
    if policy == BANNED:
        dtypes = tuple(d if not state.low else UNKNOWN_LANE for d, state in zip(dtypes, frame.autocast, strict=True))
    if op.in_place and before and rule in ("self", "first"):
        return before[0].value
    maybe = bool(operands) and all(o.value.maybe for o in operands) and not op.strict and not numbers
    tensor = Tensor(
        dtypes,
        dim,
        _origin(frame, op, node, dtypes, before, policy, written),
        maybe=maybe and rule in ("first", "promote", "self"),
        explicit=written or (bool(operands) and all(o.value.explicit for o in operands)),
        gradient=any(o.value.gradient for o in operands) and rule in ("first", "self"),
    )
    return Sequence(None, tensor) if several else tensor


def _dtypes_by_rule(frame: Frame, rule: str, operands: list[Operand], numbers: list[str | None]) -> Dtypes:
    session = frame.session
    if rule in NAMES:
        return session.constant(BITS[rule])
    if not operands:
        return session.unknown
    if rule == "first":
        return operands[0].value.dtypes
    if rule in ("promote", "float", "sum"):
        dtypes, dim = operands[0].value.dtypes, operands[0].value.dim
        for operand in operands[1:] if rule != "sum" else []:
            dtypes = session.promote(dtypes, dim, operand.value.dtypes, operand.value.dim)
            dims = {dim, operand.value.dim}
            dim = 1 if 1 in dims else None if None in dims else 0
        return tuple(_with_numbers(lane, rule, numbers) for lane in dtypes)
    if rule == "real":
        return tuple(lane._replace(mask=real_of(lane.mask)) for lane in operands[0].value.dtypes)
    if rule == "complex":
        return tuple(Lane(complex_of(lane.mask), None, lane.assumed, lane.open) for lane in operands[0].value.dtypes)
    named = next((o for o in operands if o.name == rule), None)
    return named.value.dtypes if named is not None else session.unknown


def _with_numbers(lane: Lane, rule: str, numbers: list[str | None]) -> Lane:
    """Python numbers among the operands, and what an operation makes of integers."""
    integral = lane.mask & (INTEGERS | BOOL)
    if not integral:
        return lane
    if rule == "float" or "float" in numbers:
        changed = FLOAT32
    elif rule == "sum":
        changed = BITS["int64"]
    elif "int" in numbers and lane.mask & BOOL:
        changed = BITS["int64"] | (lane.mask & INTEGERS)
    else:
        return lane
    return Lane(lane.mask & ~(INTEGERS | BOOL) | changed, None, lane.assumed, lane.open)


def result_dim(op: Op, bound: dict[str, Value], operands: list[Operand], rule: str) -> int | None:
    """0 for a full reduction, 1 where an operand has dimensions and the operation keeps them, None where unknown."""
    short = op.name.rsplit(".", 1)[1].rstrip("_")
    if short in _REDUCTIONS:
        return 0 if not any(name in bound for name in _DIM_PARAMS) and len(bound) <= 1 else None
    if short in ("item", "select", "squeeze", "dot", "vdot", "trace", "det"):
        return None
    if "loss" in short or short == "cross_entropy":
        return None
    dims = {o.value.dim for o in operands}
    return 1 if 1 in dims else None if None in dims or not dims else 0


def _origin(
    frame: Frame,
    op: Op,
    node: ast.expr | ast.stmt,
    dtypes: Dtypes,
    before: list[Operand],
    policy: str | None,
    written: bool,
) -> Origin | None:
    """Where the result's dtype was decided: at this operation, or further back where it only passed a dtype on."""
    parents = tuple(o.value.origin for o in before if o.value.origin is not None)
    if not written and len(parents) == 1 and len(before) == 1 and parents[0].dtypes == dtypes:
        return parents[0]
    short = op.name.removeprefix("torch.").removeprefix("nn.functional.").removeprefix("Tensor.")
    if written:
        what = f"dtype written in the call of {short}"
    elif len(before) > 1 and op.result == "promote":
        what = f"{short} of " + " and ".join(dict.fromkeys(_short_dtype(frame, o) for o in before[:3]))
    else:
        what = f"result of {short}"
    chosen = 0
    if policy is not None and not written:
        chosen = sum(1 << lane for lane, state in enumerate(frame.autocast) if state.on)
    return replace(frame.here(node, what, dtypes, *parents), cast=written, autocast=chosen)


def _short_dtype(frame: Frame, operand: Operand) -> str:
    return f"`{ast.unparse(operand.node)}`" if operand.node is not None and _is_short(operand.node) else operand.name


def _is_short(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))


def passed_on(tensor: Tensor, **changes: object) -> Tensor:
    """A tensor of the same dtype: a view, a copy, a part."""
    return replace(tensor, **changes)  # type: ignore[arg-type]
