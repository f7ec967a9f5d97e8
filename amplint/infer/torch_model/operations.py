"""Torch operations on abstract tensors: autocast's casts, the check of the operands, the dtype that comes out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.finding import Cause
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import (
    AUTOCASTABLE,
    COMPLEX_HALF,
    FLOAT32,
    FLOATS,
    LOW,
    UNKNOWN_LANE,
    Dtypes,
    Lane,
    bits_of,
)
from amplint.infer.lattice.joining import element_of, is_none, number_kind, options_of, unite
from amplint.infer.lattice.traits import trait_of
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Const,
    DTypeValue,
    Made,
    Number,
    Origin,
    Sequence,
    Tensor,
    Trait,
    Value,
)
from amplint.infer.names.definitions import Instance
from amplint.infer.state.function_facts import Sensitive
from amplint.infer.state.operand import Operand
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import drift, memories, mismatches, promotion, sparse, upcasts, uses
from amplint.infer.torch_model.agreeing import agreeing, is_integral
from amplint.infer.torch_model.casts_by_autocast import after_autocast, not_cast, select_on
from amplint.infer.torch_model.complex_products import has_complex_half, lacks_complex_half
from amplint.infer.torch_model.parts import Parts
from amplint.infer.torch_model.results import (
    COMPLEX_NUMBER,
    PYTHON,
    dtypes_by_rule,
    dtypes_under,
    gives_dimensions,
    number_result,
    python_result,
    result_dim,
    where_sure,
)
from amplint.infer.torch_model.torch_ops import (
    BANNED,
    FP32,
    FP32_RESULT,
    LOGARITHMS,
    LOWER,
    PROMOTE,
    Op,
    Rule,
    Slot,
    Watched,
    find_op,
)
from amplint.infer.torch_model.unknown_mates import beside_unknown

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame


_UNUSED_WITH = {"torch.nn.functional.multi_head_attention_forward": ("use_separate_proj_weight", "in_proj_weight")}
"""Operands that an operation does not look at where a flag is given and not False."""


def apply_named(frame: Frame, name: str, arguments: Arguments, node: ast.expr | ast.stmt) -> Value:
    """Apply the operation of that name; unknown where the table has none."""
    op = find_op(name, frame.session.torch_version)
    return UNKNOWN if op is None else apply(frame, op, arguments, node)


def apply(frame: Frame, op: Op, arguments: Arguments, node: ast.expr | ast.stmt) -> Value:
    """Apply an operation: what autocast casts, whether the operands agree, what comes out."""
    op = op.on(frame.session.device)
    bound = arguments.bind(op.params)
    if not op.cases:
        return _apply(frame, op, arguments, bound, node)
    variants = op.variants(arguments, bound)
    return unite(*(_apply(frame, variant, arguments, own, node) for variant, own in variants))


def _apply(frame: Frame, op: Op, arguments: Arguments, bound: dict[str, Value], node: ast.expr | ast.stmt) -> Value:
    session = frame.session
    session.recorder.torch_call(frame, op.name, node, bound)
    if op.since or op.before:
        session.changes.update(op.changes(session.device))
    if op.together:
        memories.compare(frame, node, op, arguments, bound)
    if op.watched is not None and (session.recorder.concerns(frame) or frame.left is not None):
        _watch(frame, op, arguments, bound, node)
    if op.passes and "out" not in bound:
        first = bound.get(op.params[0])
        if isinstance(first, Tensor):
            if first.dim != 1 and gives_dimensions(op, bound):
                first = replace(first, dim=1)
            kept = op.result == "self" or not (first.leaf or first.optional)
            return first if kept else replace(first, leaf=False, optional=False)
    operands, numbers = _operands(frame, op, arguments, bound)
    out = _destination(bound) if "out" in bound else None
    if "out_dtype" in bound and not is_none(bound["out_dtype"]):
        op = _with_out_dtype(op, operands)
    policy = op.policy_on(session.device, session.torch_version) if out is None and op.policy else None
    variant = mismatches.is_matmul_variant(op, out is not None)
    lowered = policy == LOWER or variant
    if lowered and session.recorder.in_function and _can_be_lowered(operands) and not _dispatches(op, bound):
        written = tuple(arguments.node(slot.position, slot.name) for slot in op.slots if slot.name in bound)
        place = Cause(frame.namespace.path, frame.namespace.source.span(node), op.name)
        session.recorder.sensitive(node, Sensitive(place, op.name, tuple(operands), written, variant))
    elif policy is not None and (policy != PROMOTE or op.strict):
        session.recorder.unsettled()
    if policy is not None and not_cast(frame, operands, policy):
        policy = None
    if policy == BANNED and frame.constructing is None:
        refused = tuple(n for n, state in enumerate(frame.autocast) if state.on and frame.live >> n & 1)
        frame.refuse(node, refused)
    seen = after_autocast(frame, operands, policy) if policy is not None else operands
    if policy == LOWER:
        session.recorder.multiplied(operands)
        upcasts.undone_upcast(frame, node, op, operands)
    failing = promotion.refuses(frame, node, op, operands) if policy == PROMOTE else ()
    strict = op.strict or (_strict_without(op, bound) if op.strict_without else ())
    if strict:
        if strict is not op.strict:
            op = replace(op, strict=strict)
        checked = seen
        if out is not None and op.dtype_arg != "out_dtype":
            checked = [*seen, Operand("out", arguments.node(None, "out"), out)]
        failing += mismatches.check(frame, node, op, checked, out is not None)
        if not failing:
            beside_unknown(frame, node, op, checked, bound)
    if (op.lacks or op.lacks_with) and policy != LOWER:
        failing += mismatches.lacks_kernel(frame, node, op, seen, bound)
        seen = mismatches.with_kernel(frame, op, seen, bound)
    if op.lacked and policy != LOWER:
        mismatches.lacked_kernel(frame, node, op, seen)
    if sparse.lacks_kernel(op.name, seen, "cpu" if memories.on_host(seen) else session.device):
        dense = next(operand.value for operand in seen[-2:] if operand.value.trait is not Trait.SPARSE)
        failing += mismatches.refuse(frame, node, replace(dense, maybe=False), tuple(bits_of(LOW)))
    if has_complex_half(seen) and lacks_complex_half(op.name, bound, session.device):
        for operand in seen:
            failing += mismatches.refuse(frame, node, operand.value, (COMPLEX_HALF,))
    if out is not None:
        return out
    if strict and not frame.backward:
        seen = agreeing(seen, op.strict)
    rule = op.result_in(session.torch_version) if op.before else op.result
    return _Result(frame, op, bound, operands, seen, numbers, policy, failing, node).of(rule)


def _dispatches(op: Op, bound: dict[str, Value]) -> bool:
    """Whether all operands are objects of classes that the code defines: what autocast does there, they decide."""
    given = [bound[slot.name] for slot in op.slots if slot.name in bound]
    return bool(given) and all(isinstance(value, Instance) for value in given)


def _can_be_lowered(operands: list[Operand]) -> bool:
    """Whether autocast casts one of the operands: it leaves complex and float64 ones alone."""
    dtypes = [lane for operand in operands for lane in operand.value.dtypes]
    return not dtypes or any(lane.open or lane.mask & AUTOCASTABLE for lane in dtypes)


def _is_complex(value: Value) -> bool:
    return isinstance(value, Const) and isinstance(value.value, complex)


def _watch(frame: Frame, op: Op, arguments: Arguments, bound: dict[str, Value], node: ast.expr | ast.stmt) -> None:
    """Note an operation that low precision may not bear, where an operand is that as the kernel sees it.

    Of those without a kernel autocast lowers only inner products (``pinv``): their own operands stay. Of a logarithm it
    matters what the operand was before autocast widened it: a number that is zero stays zero.
    """
    session = frame.session
    if op.watched is Watched.OLDER and not op.lacked_from(session.device, session.oldest_torch):
        return
    numbers = uses.extreme_numbers(op, bound)
    if not numbers and op.watched is Watched.NUMBERS and not uses.counts(bound):
        return
    operands, _ = _operands(frame, op, arguments, bound)
    if op.watched is Watched.TRAITS and not any(o.value.trait for o in operands) and not has_complex_half(operands):
        return
    policy = op.policy_on(frame.session.device, frame.session.torch_version) if "out" not in bound else None
    inner = (policy == LOWER and op.lacks) or op.name.rpartition(".")[2].rstrip("_") in LOGARITHMS
    policy = FP32 if policy == FP32_RESULT else policy
    alone = inner or not_cast(frame, operands, policy)
    seen = after_autocast(frame, operands, policy) if policy is not None and not alone else operands
    uses.note(frame, node, op, seen, numbers, bound, arguments)


def _is_false(value: Value) -> bool:
    return isinstance(value, Const) and value.value is False


def _destination(bound: dict[str, Value]) -> Tensor | None:
    """The tensor that ``out=`` names, marked where it may be None."""
    options = options_of(bound["out"])
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


# ---- operands ---------------------------------------------------------------------------------------------------


def _operands(
    frame: Frame, op: Op, arguments: Arguments, bound: dict[str, Value]
) -> tuple[list[Operand], list[str | None]]:
    """The tensors that decide dtypes, and the kinds of the Python numbers in their places."""
    operands: list[Operand] = []
    numbers: list[str | None] = []
    flag, unused = _UNUSED_WITH.get(op.name, (None, None))
    for slot in op.slots:
        value = bound.get(slot.name)
        if slot.name == unused and flag in bound and not _is_false(bound[flag]):
            continue
        if value is None:
            if slot.name != op.variadic or arguments.rest is None:
                continue
            value = Sequence(None, arguments.rest)
        if isinstance(value, Tensor) and not slot.listed:
            operands.append(Operand(slot.name, arguments.node(slot.position, slot.name), value))
        elif isinstance(value, (Const, Number)):
            numbers.append(COMPLEX_NUMBER if _is_complex(value) else number_kind(value))
        elif slot.listed:
            operands.extend(_listed(frame, op, slot, value, arguments))
        else:
            tensor = _tensor(frame, value)
            if tensor is not None:
                operands.append(Operand(slot.name, arguments.node(slot.position, slot.name), tensor))
    return operands, numbers


def _listed(frame: Frame, op: Op, slot: Slot, value: Value, arguments: Arguments) -> list[Operand]:
    """The operands of a parameter that takes several tensors, as one list or as the rest of the arguments."""
    position = slot.position
    if isinstance(value, Sequence):
        if value.items is None:
            tensor = _tensor(frame, value.element)
            return [Operand(slot.name, None, tensor)] if tensor is not None else []
        expression = arguments.node(position, slot.name)
        elements = expression.elts if isinstance(expression, (ast.List, ast.Tuple)) else []
        nodes = elements if len(elements) == len(value.items) else [None] * len(value.items)
        pairs = list(zip(nodes, value.items, strict=True))
    elif op.variadic == slot.name and position is not None:
        rest = arguments.positional[position:]
        pairs = [(arguments.nodes.get(position + i), item) for i, item in enumerate(rest)]
    else:
        pairs = [(arguments.node(position, slot.name), value)]
    return [Operand(slot.name, node, tensor) for node, item in pairs if (tensor := _tensor(frame, item)) is not None]


def _tensor(frame: Frame, value: Value) -> Tensor | None:
    """The tensor among a value's alternatives; an unknown value counts as a tensor of unknown dtype."""
    if isinstance(value, Tensor):
        return value
    unknown = False
    options = options_of(value)
    for option in options:
        if isinstance(option, Tensor):
            optional = NONE in options
            unsure = UNKNOWN in options or any(isinstance(other, Number) for other in options)
            return replace(option, optional=optional, unsure=unsure) if optional or unsure else option
        if isinstance(option, Sequence):
            element = element_of(frame.session, option)
            if isinstance(element, Tensor):
                return element
        unknown = unknown or not isinstance(option, (Const, Number, DTypeValue))
    return Tensor(frame.session.unknown, None, maybe=True) if unknown else None


# ---- results ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Result:
    """What one application of an operation gives: to operands ``before`` autocast's casts, ``seen`` after them."""

    frame: Frame
    op: Op
    bound: dict[str, Value]
    before: list[Operand]
    seen: list[Operand]
    numbers: list[str | None]
    policy: str | None
    failing: tuple[int, ...]
    node: ast.expr | ast.stmt

    def of(self, rule: Rule) -> Value:
        """The result by a rule."""
        under = self.op.under.get(self.frame.session.device) if self.op.under else None
        return self._part(rule, under)

    def _part(self, rule: Rule, under: Rule | None) -> Value:
        if isinstance(rule, tuple):
            parts = under if isinstance(under, tuple) and len(under) == len(rule) else (under,) * len(rule)
            items = tuple(self._part(part, other) for part, other in zip(rule, parts, strict=True))
            return Parts(items, fields=self.op.fields) if len(self.op.fields) == len(items) else Sequence(items)
        if rule == "none":
            return UNKNOWN
        if rule.startswith(PYTHON):
            return python_result(rule, self.before)
        if rule == "each":
            return self._each()
        if rule == "self" and self.before:
            written = self.before[0].value
            return replace(written, dtypes=self._where_it_runs(written.dtypes)) if self.failing else written
        several = rule.endswith("*") and rule not in self.op.tensors
        tensor = self._tensor(rule.rstrip("*") if several else rule, under if isinstance(under, str) else None)
        if rule == "int64*":
            tensor = replace(tensor, dim=1)
        return Sequence(None, tensor) if several else tensor

    def _each(self) -> Value:
        """A list whose items have the dtypes of those that were passed."""
        tensors = tuple(replace(o.value, leaf=False) for o in self.before)
        slot = self.op.slots[0]
        passed = self.bound.get(slot.name)
        if passed is None or (isinstance(passed, Sequence) and passed.items is None):
            return Sequence(None, unite(*tensors) if tensors else UNKNOWN)
        return Sequence(tensors)

    def _tensor(self, rule: str, under: str | None) -> Tensor:
        frame, op, operands = self.frame, self.op, self.seen
        session = frame.session
        dtypes = self._dtypes(rule, under)
        requested = self.bound.get(op.dtype_arg) if op.dtype_arg else None
        written = False
        if requested is not None and not is_none(requested):
            dtypes = requested.dtypes if isinstance(requested, DTypeValue) else session.unknown
            written = isinstance(requested, DTypeValue) and requested.written
        dtypes = self._where_it_runs(dtypes)
        if self.policy == BANNED:
            dtypes = tuple(
                d if not state.low else UNKNOWN_LANE for d, state in zip(dtypes, frame.autocast, strict=True)
            )
        if (
            rule in ("promote", "widest")
            and len(operands) > 1
            and not op.strict
            and (not op.name.startswith("torch.nn.") or op.name.endswith("_norm"))
        ):
            drift.promoted(frame, op, self.node, operands, dtypes)
            if frame.region is not None:
                upcasts.one_sided(frame, self.node, op, operands)
        maybe = bool(operands) and not op.strict and not self.numbers and all(o.value.maybe for o in operands)
        trait = None
        if op.gives_trait:
            given = [(operand.value.trait, operand.node) for operand in operands]
            trait = trait_of(op.name.rpartition(".")[2], given, self.bound)
        return Tensor(
            dtypes,
            result_dim(op, self.bound, operands),
            _origin(frame, op, self.node, dtypes, self.before, self.policy, written),
            maybe=maybe and rule in ("first", "promote"),
            explicit=written or (bool(operands) and all(o.value.explicit for o in operands)),
            gradient=rule == "first" and any(o.value.gradient for o in operands),
            trait=trait,
            unsure=requested is None and any(o.value.unsure for o in operands),
            host=memories.result(frame, op, operands) if "device" not in self.bound else None,
        )

    def _where_it_runs(self, dtypes: Dtypes) -> Dtypes:
        """Unknown in the scenarios in which the operation raises: what follows from it is no defect of its own."""
        if not self.failing:
            return dtypes
        return tuple(UNKNOWN_LANE if lane in self.failing else d for lane, d in enumerate(dtypes))

    def _dtypes(self, rule: str, under: str | None) -> Dtypes:
        frame, op = self.frame, self.op
        session = frame.session
        if rule == "numbers":
            kinds = [number_kind(v) if isinstance(v, (Const, Number)) else None for v in self._numbers()]
            mask = number_result(kinds)
            return session.constant(mask) if mask else session.unknown
        dtypes = dtypes_by_rule(session, op, rule, self.seen, self.numbers)
        if self.policy == FP32_RESULT:
            on = tuple(Lane(FLOAT32 | d.mask & ~AUTOCASTABLE) if d.mask & LOW else d for d in dtypes)
            dtypes = select_on(frame, on, dtypes)
        if under is not None and any(state.low for state in frame.autocast):
            dtypes = dtypes_under(session, op, under, self.before, frame.autocast, dtypes)
        unsure = op.unsure_under.get(session.device) if op.unsure_under else None
        if unsure and any(state.low for state in frame.autocast):
            dtypes = where_sure(unsure, dtypes, self.before, frame.autocast)
        return dtypes

    def _numbers(self) -> list[Value]:
        """The Python numbers that decide a constructor's dtype."""
        return [self.bound[name] for name in self.op.numbers if name in self.bound and not is_none(self.bound[name])]


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
    elif not before and op.result != "none" and dtypes[0].known:
        what = f"torch.{short}() of Python numbers"
    elif len(before) > 1 and op.result == "promote":
        what = f"{short} of " + " and ".join(dict.fromkeys(_short_dtype(o) for o in before[:3]))
    else:
        what = f"result of {short}"
    chosen = 0
    if policy is not None and not written:
        chosen = sum(1 << lane for lane, state in enumerate(frame.autocast) if state.on)
    made = None
    if dtypes[0].mask & FLOATS and all(is_integral(operand) for operand in before):
        made = Made.CONVERTED if written else Made.DEFAULT
    return Origin(frame.namespace.source, node, what, dtypes, parents, written, chosen, made=made)


def _short_dtype(operand: Operand) -> str:
    return f"`{ast.unparse(operand.node)}`" if isinstance(operand.node, (ast.Name, ast.Attribute)) else operand.name
