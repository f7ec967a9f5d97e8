"""What a failed forward says about its inputs."""

from __future__ import annotations

import ast
import math
import re
from typing import TYPE_CHECKING

import torch

from amplint.verify.build.frames import MISSING, Comparison, Place, broken, places
from amplint.verify.build.mapping_repair import mappings
from amplint.verify.build.operation_repair import from_operation
from amplint.verify.build.record_repair import records
from amplint.verify.build.reshape import resized, with_kind, with_rank
from amplint.verify.build.signatures import VARIADIC, Parameter
from amplint.verify.build.spec import Const, Items, Plan, Repair, Spec, Tensor, each, replaced, tensors_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build.searches import InputSearch, Probe


def repairs(search: InputSearch, plan: Plan, probe: Probe) -> Iterator[Repair]:
    """Plans that may cure the failure of ``probe``, each with its cost: the smaller, the likelier."""
    error = probe.error
    if not isinstance(error, Exception):
        return
    text = str(error)
    trail = places(error)
    yield from _missing(search, plan, text)
    if probe.trace.failure is not None:
        yield from from_operation(search, plan, probe.trace)
    yield from _unpacked(search, plan, probe, trail, text)
    if isinstance(error, IndexError) and trail:
        yield from _indexed(search, plan, probe, trail[0])
    yield from mappings(search, plan, trail, error)
    yield from records(search, plan, text, trail)
    blamed = _blamed(search, plan, trail)
    yield from _kinds(search, plan, text, blamed)
    for place in trail[:3]:
        for comparison in broken(place):
            yield from _compared(search, plan, probe, place, comparison)
    yield from _patterns(search, plan, probe, text)
    yield from _numbers(plan, text)
    if "more than 1 value per channel" in text:
        yield from _larger(plan)
    for rank, name in enumerate(blamed[:3]):
        yield from each(plan, name, search.choices(plan, name), 1.6 + 0.4 * rank, 0.3)


def _tensor_choices(search: InputSearch, plan: Plan, name: str) -> list[Spec]:
    return [spec for spec in search.choices(plan, name) if not (isinstance(spec, Const) and spec.value is None)]


def _missing(search: InputSearch, plan: Plan, text: str) -> Iterator[Repair]:
    missing = re.search(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)", text)
    if missing:
        wanted = [name for name in re.findall(r"'(\w+)'", missing[1]) if name not in plan]
        passes = any(parameter.kind in VARIADIC for parameter in search.parameters.values())
        if wanted and (passes or all(name in search.parameters for name in wanted)):
            variadic = {n for n, p in search.parameters.items() if p.kind in VARIADIC}
            rest = {name: spec for name, spec in plan.items() if name not in variadic}
            yield 0.5, {**rest, **{name: search.choices(plan, name)[0] for name in wanted}}
    more = next((n for n, p in search.parameters.items() if p.kind is Parameter.VAR_POSITIONAL), None)
    if missing and more is not None and more not in plan:  # forward(x, *args) hands them on to what names them
        given = [search.choices(plan, name)[0] for name in re.findall(r"'(\w+)'", missing[1])]
        yield 0.5, {**plan, more: Items(tuple, tuple(given))}


def _blamed(search: InputSearch, plan: Plan, trail: list[Place]) -> list[str]:
    """Parameters of the forward named on the failing statements, innermost first; frames of other modules count where
    they use the same names."""
    found: list[str] = []
    for place in trail:
        found += sorted(place.names() & (set(search.parameters) | set(plan)))
    return [
        name
        for name in dict.fromkeys(found)
        if name in plan or (name in search.parameters and search.parameters[name].kind not in VARIADIC)
    ]


def _unpacked(search: InputSearch, plan: Plan, probe: Probe, trail: list[Place], text: str) -> Iterator[Repair]:
    """``b, c, h, w = x.shape`` and ``cos, sin = rotary``."""
    expected = re.search(r"unpack \(expected (?:at least )?(\d+)", text)
    if not trail or not (expected or "unpack non-iterable" in text or "not iterable" in text):
        return
    place = trail[0]
    node = place.statement
    value = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    count = len(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else int(expected[1]) if expected else 2
    if value is None:
        return
    base = _shape_base(value)
    tensor = place.evaluate(base) if base is not None else None
    if isinstance(tensor, torch.Tensor):
        for path in probe.trace.origins(tensor):
            yield from with_rank(search.module, plan, path, count, tensor)


def _indexed(search: InputSearch, plan: Plan, probe: Probe, place: Place) -> Iterator[Repair]:
    """``x.shape[3]``: enough dimensions."""
    for node in ast.walk(place.statement) if place.statement is not None else ():
        if not isinstance(node, ast.Subscript):
            continue
        base, index = _shape_base(node.value), place.evaluate(node.slice)
        tensor = place.evaluate(base) if base is not None else None
        if isinstance(tensor, torch.Tensor) and type(index) is int and not -tensor.dim() <= index < tensor.dim():
            for path in probe.trace.origins(tensor):
                for rank in (index + 1, index + 2) if index >= 0 else (-index, 1 - index):
                    yield from with_rank(search.module, plan, path, rank, tensor)


def _shape_base(node: ast.expr) -> ast.expr | None:
    """``x`` of ``x.shape``, ``x.size()``, ``x.shape[1:]``."""
    if isinstance(node, ast.Subscript):
        return _shape_base(node.value)
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        return node.func.value
    return None


_NEEDS_NUMBER = (
    r"interpreted as an integer|must be tuple of ints|only integer tensors|slice indices must be integers|must be int|"
    r"must be tuple of (SymInts|ints), but found element of type Tensor|can be converted to (an index|Python scalars)|"
    r"(arange|zeros|ones|empty|full|linspace|eye|randint)\(\) received an invalid combination of arguments"
)


_OTHER_KINDS = (
    (r"(Found dtype|but got|but found) (Long|Bool)|'(Long|Bool)'|expected Float", ("long", "bool"), "float"),
    (r"between 0 and 1|in the range \[0, ?1\]|within the interval \[0, ?1\]|in \[0, ?1\]", ("float",), "unit"),
)
"""What messages say of the numbers in tensors, the kinds of tensors that are to blame, and the kind that is not."""


def _kinds(search: InputSearch, plan: Plan, text: str, blamed: list[str]) -> Iterator[Repair]:
    """A value of another kind where the message is about kinds."""
    for rank, name in enumerate(blamed[:4]):
        cost = 0.6 + 0.2 * rank
        spec = plan.get(name)
        if "NoneType" in text and (spec is None or (isinstance(spec, Const) and spec.value is None)):
            yield from each(plan, name, _tensor_choices(search, plan, name), cost, 0.15)
        elif re.search(_NEEDS_NUMBER, text) and isinstance(spec, Tensor):
            yield from each(plan, name, [Const(number) for number in (4, 1, 16, 2)], cost, 0.1)
        elif re.search(
            r"'(int|float|bool|str)' object (has no attribute|is not)|argument .* must be Tensor, not", text
        ) and isinstance(spec, Const):
            main = next(iter(tensors_of(plan).values()), None)
            if main is not None:
                yield cost, {**plan, name: main}
    if re.search(r"'(list|tuple)' object has no attribute|must be Tensor, not (list|tuple)", text):
        listed = {
            n: spec.items for n, spec in plan.items() if isinstance(spec, Items) and spec.items and not spec.names
        }
        for rank, name in enumerate(sorted(listed, key=lambda name: name not in blamed)):
            yield 0.6 + 0.2 * rank, {**plan, name: listed[name][0]}
    for pattern, old, new in _OTHER_KINDS:
        if re.search(pattern, text):
            held = [path for path, tensor in tensors_of(plan).items() if tensor.kind in old]
            for path in held:
                yield 0.8, with_kind(plan, path, new, 0)
            together = plan
            for path in held:
                together = with_kind(together, path, new, 0)
            yield 0.9, together
    if re.search(r"complex", text, re.IGNORECASE):
        real = [path for path, tensor in tensors_of(plan).items() if tensor.kind in ("float", "long")]
        together = plan
        for path in real:
            yield 0.9, with_kind(plan, path, "complex", 0)
            together = with_kind(together, path, "complex", 0)
        if len(real) > 1:
            yield 1.0, together


def _compared(search: InputSearch, plan: Plan, probe: Probe, place: Place, comparison: Comparison) -> Iterator[Repair]:
    """Sizes that make a failed comparison hold."""
    left, right = comparison.left_value, comparison.right_value
    if left is MISSING or right is MISSING or isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
        return
    for node, have, want in ((comparison.left, left, right), (comparison.right, right, left)):
        rank_of = _rank_base(node)
        if rank_of is not None and isinstance(want, int):
            tensor = place.evaluate(rank_of)
            if isinstance(tensor, torch.Tensor):
                for path in probe.trace.origins(tensor):
                    yield from with_rank(search.module, plan, path, want, tensor)
            continue
        if type(have) is int and type(want) is int and comparison.op in ("Eq", "LtE", "GtE", "Lt", "Gt"):
            for path, spec in tensors_of(plan).items():
                for changed in resized(spec, have, want):
                    yield 0.7, replaced(plan, path, changed)
    if isinstance(comparison.left, ast.BinOp) and isinstance(comparison.left.op, ast.Mod) and comparison.op == "Eq":
        have, divisor = place.evaluate(comparison.left.left), place.evaluate(comparison.left.right)
        if type(have) is int and type(divisor) is int and divisor > 0:
            for path, spec in tensors_of(plan).items():
                for multiple in (divisor * max(1, round(have / divisor)), divisor * 2):
                    for changed in resized(spec, have, multiple):
                        yield 0.7, replaced(plan, path, changed)
    if comparison.op in ("IsNot", "Is") and right is None and isinstance(comparison.left, ast.Name):
        name = comparison.left.id
        if name in search.parameters and comparison.op == "IsNot":
            yield from each(plan, name, _tensor_choices(search, plan, name), 0.6, 0.1)


def _rank_base(node: ast.expr) -> ast.expr | None:
    """``x`` of ``x.dim()``, ``x.ndim``, ``len(x.shape)``."""
    if isinstance(node, ast.Attribute) and node.attr == "ndim":
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("dim", "ndimension"):
        return node.func.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        return _shape_base(node.args[0])
    return None


def _patterns(search: InputSearch, plan: Plan, probe: Probe, text: str) -> Iterator[Repair]:
    """einops: ``Error while processing rearrange-reduction pattern "b c h w -> ..."``."""
    pattern = re.search(r"pattern [\"'](.+?)->", text)
    if not pattern or "..." in pattern[1]:
        return
    axes = len(re.sub(r"\([^)]*\)", "g", pattern[1]).split())
    shape = re.search(r"Input tensor shape: torch\.Size\(\[([\d, ]*)\]\)", text)
    have = tuple(int(size) for size in shape[1].split(",") if size.strip()) if shape else ()
    for path, spec in tensors_of(plan).items():
        if not have or spec.shape == have or len(spec.shape) == len(have):
            yield from with_rank(search.module, plan, path, axes, None)


def _numbers(plan: Plan, text: str) -> Iterator[Repair]:
    """Two numbers in the message, one of which is a size of an input: the other one instead."""
    numbers = list(dict.fromkeys(int(digits) for digits in re.findall(r"(?<![\w.#-])\d+(?![\w.]\d)", text)))[:6]
    if len(numbers) < 2:
        return
    for path, spec in tensors_of(plan).items():
        for have in numbers:
            for want in numbers:
                if have != want and 0 < want <= 4096:
                    if have == math.prod(spec.shape) and len(spec.shape) > 1:  # flattened before it is counted
                        yield 1.4, replaced(plan, path, spec.shaped((want,)))
                    for changed in resized(spec, have, want):
                        yield 1.4, replaced(plan, path, changed)


def _larger(plan: Plan) -> Iterator[Repair]:
    """Twice the batch, so that a batch norm has more than one value a channel."""
    for path, spec in tensors_of(plan).items():
        if spec.shape:
            plan = replaced(plan, path, spec.shaped((max(4, 2 * spec.shape[0]), *spec.shape[1:])))
    yield 0.5, plan
