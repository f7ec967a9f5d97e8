"""What the error of a constructor says about its arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from amplint.verify.build import names, parts
from amplint.verify.build.frames import MISSING, Comparison, Place, broken, places
from amplint.verify.build.nested_configs import fields
from amplint.verify.build.object_repair import objects_asked_for
from amplint.verify.build.signatures import VARIADIC, Parameter
from amplint.verify.build.spec import Const, Make, Plan, Repair, Spec, each, realise
from amplint.verify.build.values import candidates, layer_choices
from amplint.verify.targets import self_attribute

if TYPE_CHECKING:
    from amplint.verify.build.searches import ArgumentSearch


def repairs(search: ArgumentSearch, plan: Plan, error: Exception) -> Iterator[Repair]:
    """Plans that may cure ``error``, each with what it costs: the smaller, the likelier."""
    text = str(error)
    trail = places(error)
    yield from _keywords(search, plan, text)
    blamed = _blamed(search, plan, trail)
    for place in trail[:4]:
        for comparison in broken(place):
            yield from _compared(search, plan, place, comparison)
    if isinstance(
        error, (KeyError, ValueError, IndexError, TypeError, NotImplementedError, AssertionError, AttributeError)
    ):
        yield from _registry(search, plan, trail, blamed)
        yield from _quoted(search, plan, text, blamed)
    yield from _unset(search, plan, text)
    yield from _kinds(search, plan, text, blamed)
    yield from fields(search, plan, text, trail)
    yield from _other_objects(search, plan, text)
    yield from objects_asked_for(search, plan, text, trail, blamed)
    yield from of_the_library(search, plan, text)
    yield from other_numbers(plan, text)
    for rank, name in enumerate(blamed[:4]):
        yield from each(plan, name, search.choices(name)[:8], 1.5 + 0.5 * rank, 0.3)


def _keywords(search: ArgumentSearch, plan: Plan, text: str) -> Iterator[Repair]:
    missing = re.search(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)", text)
    if missing:
        wanted = [name for name in re.findall(r"'(\w+)'", missing[1]) if name not in plan]
        if wanted and (search.takes_any_keyword() or all(name in search.parameters for name in wanted)):
            yield 0.5, {**plan, **{name: search.choices(name)[0] for name in wanted}}


def _blamed(search: ArgumentSearch, plan: Plan, trail: list[Place]) -> list[str]:
    """Parameters named on the failing statements, innermost first; those in the plan before those with defaults."""
    found: list[str] = []
    for place in trail:
        found += sorted(place.names() & set(search.parameters))
    found = [name for name in dict.fromkeys(found) if search.parameters[name].kind not in VARIADIC]
    return sorted(found, key=lambda name: name not in plan)


def _compared(search: ArgumentSearch, plan: Plan, place: Place, comparison: Comparison) -> Iterator[Repair]:
    """Values that make a failed comparison hold."""
    left, right = comparison.left_value, comparison.right_value
    remainder = _remainder(place, comparison)
    if remainder is not None:
        value, divisor = remainder
        for name in _holding(search, plan, value):
            yield 0.9, {**plan, name: Const(divisor * (value // divisor + 1))}
        return
    if comparison.op == "Isinstance":
        yield from _instances(search, comparison, plan)
    if left is MISSING or right is MISSING or _arrays(left, right):
        return
    if (
        comparison.op in ("Lt", "LtE", "Gt", "GtE")
        and isinstance(left, (int, float))
        and isinstance(right, (int, float))
    ):
        margin = {"Lt": -1, "LtE": 0, "Gt": 1, "GtE": 0}[comparison.op]
        for name in _holding(search, plan, left):
            yield 0.7, {**plan, name: Const(right + margin)}
    elif comparison.op in ("Is", "IsNot") and (left is None or right is None):
        for name in sorted(place.names() & set(search.parameters)):
            wanted = comparison.op == "Is"
            for index, spec in enumerate(search.choices(name)):
                if (spec.key == "NoneType:None") == wanted:
                    yield 0.8 + 0.1 * index, {**plan, name: spec}
            if wanted:
                yield 0.9, {**plan, name: Const(None)}


def _instances(search: ArgumentSearch, comparison: Comparison, plan: Plan) -> Iterator[Repair]:
    """``isinstance(name, Kind)``: an object of that kind."""
    if not isinstance(comparison.left, ast.Name) or comparison.left.id not in search.parameters:
        return
    name, wanted = comparison.left.id, comparison.right_value
    kinds = [kind for kind in (wanted if isinstance(wanted, tuple) else (wanted,)) if isinstance(kind, type)]
    for rank, kind in enumerate(kinds[:3]):
        asked = search.parameters[name].replace(annotation=kind, default=Parameter.empty)
        yield from each(plan, name, candidates(asked, search.target)[:3], 0.5 + 0.2 * rank, 0.1)


def of_the_library(search: ArgumentSearch, plan: Plan, text: str) -> Iterator[Repair]:
    """``'Identity' object has no attribute 'dim'``, or a forward lacks a keyword: a module of the library instead."""
    for pattern, find in (
        (r"'(\w+)' object has no attribute '(\w+)'", parts.having),
        (r"(\w+)\.forward\(\) got an unexpected keyword argument '(\w+)'", parts.taking),
    ):
        match = re.search(pattern, text)
        for name, spec in plan.items() if match else ():
            if match and isinstance(spec, Make) and re.search(rf"\b{match[1]}\(", spec.label):
                yield from each(plan, name, find(search.target, name, match[2]), 0.4, 0.2)


def _arrays(left: Any, right: Any) -> bool:
    return any(hasattr(value, "__array__") for value in (left, right))


def _remainder(place: Place, comparison: Comparison) -> tuple[int, int] | None:
    """``a`` and ``b`` where ``a % b == 0`` was wanted."""
    node = comparison.left
    if comparison.op != "Eq" or comparison.right_value != 0 or not isinstance(node, ast.BinOp):
        return None
    if not isinstance(node.op, ast.Mod):
        return None
    value, divisor = place.evaluate(node.left), place.evaluate(node.right)
    return (value, divisor) if isinstance(value, int) and isinstance(divisor, int) and divisor else None


def _holding(search: ArgumentSearch, plan: Plan, value: Any) -> list[str]:
    """Parameters that have ``value``: those in the plan first."""
    if isinstance(value, bool) or value is MISSING:
        return []
    found = []
    for name in [*plan, *(name for name in search.parameters if name not in plan)]:
        current = _current(search, plan, name)
        if type(current) is type(value) and not hasattr(current, "__array__") and current == value:
            found.append(name)
    return found[:4]


def _current(search: ArgumentSearch, plan: Plan, name: str) -> Any:
    if name in plan:
        spec = plan[name]
        return MISSING if isinstance(spec, Make) else realise(spec)
    parameter = search.parameters.get(name)
    return parameter.default if parameter is not None else MISSING


def _registry(search: ArgumentSearch, plan: Plan, trail: list[Place], blamed: list[str]) -> Iterator[Repair]:
    """A failed look-up ``TABLE[name]``: the table's own keys."""
    for place in trail[:2]:
        for node in ast.walk(place.statement) if place.statement is not None else ():
            if not isinstance(node, ast.Subscript):
                continue
            table = place.evaluate(node.value)
            if isinstance(table, Mapping) and 0 < len(table) < 500:
                key = place.evaluate(node.slice)
                offered = [Const(option) for option in [key for key in table if isinstance(key, (str, int))][:5]]
                for name in _holding(search, plan, key) or blamed[:1]:
                    yield from each(plan, name, offered, 0.7, 0.1)


def _quoted(search: ArgumentSearch, plan: Plan, text: str, blamed: list[str]) -> Iterator[Repair]:
    """Words in quotes in the message: the values that the parameter accepts."""
    words = re.findall(r"[\"'`]([\w./-]+)[\"'`]", text)
    rejected = [name for name in plan for word in words if _current(search, plan, name) == word]
    offered = re.search(r"(?:options|choices|choose|values|one of|supported)\b[^:]*?(?:are|is|from|of)?:?\s(.+)", text)
    listed = re.findall(r"[\w./-]+", re.sub(r"\b(or|and|are|is)\b", " ", offered[1])) if offered else []
    for name in dict.fromkeys([*rejected, *blamed[:2]]):
        if isinstance(_current(search, plan, name), str) or offered:
            yield from each(plan, name, [Const(word) for word in list(dict.fromkeys([*words, *listed]))[:6]], 0.6, 0.1)
    yield from _given(search, plan, words)  # "`depth` must be passed"


def after_forward(search: ArgumentSearch, plan: Plan, error: BaseException | None, text: str) -> Iterator[Repair]:
    """What the error of a forward, in one line ``text``, says about the constructor's arguments.

    ``either size or scale_factor should be defined``: a value for each parameter named there that was left None. An
    attribute of the module that is called, iterated, or asked for what it does not have: another kind of value for the
    parameter of its name.
    """
    for extra, repaired in other_numbers(plan, text):
        yield extra - 0.7, repaired
    yield from of_the_library(search, plan, text)
    yield from _given(search, plan, re.findall(r"\w+", text))
    if isinstance(error, Exception):
        trail = places(error)
        blamed = [name for name in _blamed(search, plan, trail[:1]) if name in _attributes(trail[:1])]
        yield from _kinds(search, plan, str(error), blamed)
        yield from objects_asked_for(search, plan, str(error), [], blamed)


def _attributes(trail: list[Place]) -> set[str]:
    """What the failing statements read from ``self``."""
    statements = [place.statement for place in trail if place.statement is not None]
    return {read for statement in statements for node in ast.walk(statement) if (read := self_attribute(node))}


def _given(search: ArgumentSearch, plan: Plan, words: list[str]) -> Iterator[Repair]:
    for word in dict.fromkeys(words):
        if word in search.parameters and _current(search, plan, word) is None:
            given = [spec for spec in search.choices(word) if not (isinstance(spec, Const) and spec.value is None)]
            yield from each(plan, word, given[:3], 0.5, 0.2)


_NEEDS_SEQUENCE = (
    r"'(int|float|NoneType|type)' object is not (iterable|subscriptable)|of type '(int|NoneType)' has no len|"
    r"unpack non-iterable"
)
_NEEDS_NUMBER = (
    r"unsupported operand type|not supported between|must be (an? )?(int|integer|real number|number|float)|"
    r"can't multiply sequence|cannot be interpreted as an integer|can only concatenate|"
    r"received an invalid combination of arguments|bad operand type|not all arguments converted"
)
_NEEDS_CALL = r"object is not callable"


def _kinds(search: ArgumentSearch, plan: Plan, text: str, blamed: list[str]) -> Iterator[Repair]:
    """A value of another kind where the message is about kinds."""
    names_ = blamed[:4] or list(plan)[:4]
    for rank, name in enumerate(names_):
        value = _current(search, plan, name)
        cost = 0.6 + 0.2 * rank
        if re.search(_NEEDS_SEQUENCE, text) and (value is None or type(value) in (int, float)):
            number = value if value is not None else names.FEATURES
            expected = re.search(r"expected (?:at least )?(\d+)", text)
            counts = [int(expected[1])] if expected else [4, 2, 3, 1]
            yield from each(plan, name, [Const((number,) * count) for count in counts], cost, 0.1)
        elif re.search(_NEEDS_NUMBER, text) and isinstance(value, (list, tuple, str, dict, type, type(None))):
            yield from each(plan, name, _numbers_among(search.choices(name)) or [Const(names.FEATURES)], cost, 0.1)
        elif re.search(_NEEDS_CALL, text):
            layers = layer_choices(name, search.target)
            yield from each(plan, name, [s for s in layers if s.key != plan.get(name, s).key], cost, 0.1)
        elif "index out of range" in text and isinstance(value, (list, tuple)) and value:
            for extra in (1, 2, 4):
                yield cost + 0.1 * extra, {**plan, name: Const(type(value)([*value, *[value[-1]] * extra]))}
        elif "unpack" in text and isinstance(value, (list, tuple)) and value:
            expected = re.search(r"expected (\d+)", text)
            if expected:
                count = int(expected[1])
                yield cost, {**plan, name: Const(type(value)([*value, *[value[-1]] * count][:count]))}


def _unset(search: ArgumentSearch, plan: Plan, text: str) -> Iterator[Repair]:
    """``size: int = None`` where None does not do: values for all parameters that are annotated so."""
    if "NoneType" not in text:
        return
    left = [
        name
        for name, parameter in search.parameters.items()
        if name not in plan and parameter.default is None and parameter.annotation in (int, float, str, bool)
    ]
    if left:
        yield 0.4, {**plan, **{name: search.choices(name)[0] for name in left}}


def _other_objects(search: ArgumentSearch, plan: Plan, text: str) -> Iterator[Repair]:
    """``'BackboneConfig' object has no attribute 'heads'``: an object of another class."""
    match = re.search(r"'(\w+)' object has no attribute", text)
    for name, spec in plan.items():
        if match and isinstance(spec, Make) and re.search(rf"\b{match[1]}\(", spec.label):
            others = [other for other in search.choices(name) if f"{match[1]}(" not in other.key]
            yield from each(plan, name, others, 0.4, 0.1)


def _numbers_among(specs: list[Spec]) -> list[Const]:
    return [spec for spec in specs if isinstance(spec, Const) and type(spec.value) in (int, float)][:3]


def other_numbers(plan: Plan, text: str) -> Iterator[Repair]:
    """Two numbers in the message, one of which a parameter has: the other one instead."""
    numbers = list(dict.fromkeys(int(digits) for digits in re.findall(r"(?<![\w.])\d+(?![\w.]\d)", text)))[:4]
    if len(numbers) < 2:
        return
    for name, spec in plan.items():
        if isinstance(spec, Const) and type(spec.value) is int and spec.value in numbers:
            for other in numbers:
                if other != spec.value:
                    yield 1.2, {**plan, name: Const(other)}
