"""Where paths meet: what variables hold then, and whether another way round a loop has brought anything new."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.answered import ASKED, Answered, Held
from amplint.infer.lattice.joining import merge, options_of
from amplint.infer.lattice.values import (
    UNKNOWN,
    Builtin,
    Const,
    DTypeValue,
    Layer,
    Mapping,
    Number,
    Sequence,
    Tensor,
    Text,
    Union,
    Value,
)
from amplint.infer.names.definitions import Bound, Class, Function, Instance
from amplint.infer.state.activation import Env
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.infer.state.session import Session

MAX_COMPARED = 12
"""Values inside each other that are compared for likeness."""


def reaching(a: Env, b: Env) -> tuple[int, int, int]:
    """The scenarios in which each of two paths gets to where they meet, and those in which both raise before: there
    both are gone on with."""
    a_ends, b_ends = a.live & ~a.raised, b.live & ~b.raised
    raised = (a.live | b.live) & ~(a_ends | b_ends)
    return a.live & ~(a.raised & b_ends), b.live & ~(b.raised & a_ends), raised


def met(session: Session, a: Env, b: Env) -> Env:
    """What holds where two paths meet."""
    if not a.live:
        return b
    if not b.live:
        return a
    first, second = a.variables, b.variables
    a_live, b_live, raised = reaching(a, b)
    together = first.copy()
    asked: list[tuple[str, Answered, Answered]] = []
    for name, left in first.items():
        right = second.get(name)
        if left is right:
            continue
        if right is None:
            if name[0] == ASKED or "." in name:
                del together[name]
        elif name[0] != ASKED:
            together[name] = merge(session, left, a_live, right, b_live)
        elif isinstance(left, Answered) and isinstance(right, Answered):
            asked.append((name, left, right))
        else:
            del together[name]
    if not second.keys() <= first.keys():
        for name, right in second.items():
            if name not in first and name[0] != ASKED and "." not in name:
                together[name] = right
    for name, one, other in asked:
        together[name] = _answered(session, one, first, other, second, together)
    return Env(a.live | b.live, together, raised)


def _answered(
    session: Session,
    a: Answered,
    first: dict[str, Value],
    b: Answered,
    second: dict[str, Value],
    both: dict[str, Value],
) -> Answered:
    """What is known of a test where two paths meet that made it, with the variables of each, and of both."""
    yes, no, words = a.yes | b.yes, a.no | b.no, a.words | b.words
    if a.since is not b.since:
        return Answered(yes, no, words, object())
    true: dict[str, Value] = {}
    false: dict[str, Value] = {}
    for name in {**a.joined, **b.joined}:
        left, right = first.get(name), second.get(name)
        if left is not None and right is not None:
            (left_true, left_false), (right_true, right_false) = _sides(a, name, left), _sides(b, name, right)
            true[name] = _of_both(session, left_true, a.yes, right_true, b.yes)
            false[name] = _of_both(session, left_false, a.no, right_false, b.no)
    return Answered(yes, no, words, a.since, true, false, {name: both[name] for name in true})


def _sides(answered: Answered, name: str, value: Value) -> tuple[Value, Value]:
    """What a variable that holds ``value`` holds where a test was true, and where it was false."""
    if answered.joined.get(name) is value:
        return answered.true[name], answered.false[name]
    return value, value


def _of_both(session: Session, left: Value, left_live: int, right: Value, right_live: int) -> Value:
    if left is right or not right_live:
        return left
    return merge(session, left, left_live, right, right_live) if left_live else right


@once_for_each_node
def binds(node: ast.expr) -> frozenset[str]:
    """Names that an expression binds."""
    return frozenset([inner.target.id for inner in nodes_below(node) if type(inner) is ast.NamedExpr])


def unlike(before: Env, after: Env, *, known: bool = False) -> list[str]:
    """Names of the variables that hold something else than before; ``known``: of those of which anything was known.

    What a loop binds first is read behind that, or is unknown. Numbers, text and lists that hold no tensor and no dtype
    do not count.
    """
    return [
        name
        for name, old in before.variables.items()
        if name[0] != ASKED
        and (value := after.variables.get(name)) is not None
        and value is not old
        and not alike(old, value)
        and not (known and UNKNOWN in options_of(old))
        and not (_is_plain(old) and _is_plain(value))
    ]


def forgotten(before: Env, after: Env) -> bool:
    """Whether less is known of tests that were made than before: another way round a loop finds them open."""
    return any(
        isinstance(old, (Answered, Held)) and _says_less(after.variables.get(name), old)
        for name, old in before.variables.items()
        if name[0] == ASKED
    )


def _says_less(new: Value | None, old: Value) -> bool:
    if not isinstance(new, Answered) or not isinstance(old, Answered):
        return new is not old
    if new.yes & ~old.yes or new.no & ~old.no:
        return True
    return any(
        name not in new.joined
        or not alike(old.true[name], new.true[name])
        or not alike(old.false[name], new.false[name])
        for name in old.joined
    )


def _is_plain(value: Value, level: int = 0) -> bool:
    """Whether a value is a number, text or a list, or may be one, and holds no tensor and no dtype."""
    if isinstance(value, Union):
        return level < MAX_COMPARED and all(_is_plain(option, level + 1) for option in value.options)
    if isinstance(value, Sequence):
        held = value.items if value.items is not None else (value.element,)
        return level < MAX_COMPARED and all(_is_plain(item, level + 1) or isinstance(item, _HELD) for item in held)
    if isinstance(value, Mapping):
        held = (*value.items.values(), value.other or UNKNOWN)
        return level < MAX_COMPARED and all(_is_plain(item, level + 1) or isinstance(item, _HELD) for item in held)
    return value is UNKNOWN or isinstance(value, (Number, Text, Builtin)) or type(value) is Const


def carries_dtype(value: Value, level: int = 0) -> bool:
    """Whether a value is a tensor, a dtype or a function, or holds or may be one."""
    if isinstance(value, (Tensor, DTypeValue, Function, Bound)):
        return True
    held: Iterable[Value] = ()
    if isinstance(value, Union):
        held = value.options
    elif isinstance(value, Sequence):
        held = value.items if value.items is not None else (value.element,)
    elif isinstance(value, Mapping):
        held = value.items.values() if value.other is None else (*value.items.values(), value.other)
    return level < MAX_COMPARED and any(carries_dtype(item, level + 1) for item in held)


_HELD = (Layer, Instance, Function, Class)


def alike(a: Value, b: Value, level: int = 0) -> bool:
    """Whether two values are the same but for which dtypes go together."""
    if a is b:
        return True
    if level > MAX_COMPARED:
        return False
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _of_tensor(a) == _of_tensor(b)
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        if a.items is None or b.items is None:
            same = a.items is None and b.items is None and alike(a.element, b.element, level + 1)
            ends = _all_alike((*a.head, a.middle), (*b.head, b.middle), level) and _all_alike(a.tail, b.tail, level)
            return same and ends
        return _all_alike(a.items, b.items, level)
    if isinstance(a, Union) and isinstance(b, Union):
        return _all_alike(a.options, b.options, level)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        other = (a.other or UNKNOWN, b.other or UNKNOWN)
        same = list(a.items) == list(b.items) and (a.other is None) == (b.other is None) and a.loose == b.loose
        return same and alike(*other, level + 1) and _all_alike([*a.items.values()], [*b.items.values()], level)
    if isinstance(a, Function) and isinstance(b, Function):
        return a.node is b.node
    if isinstance(a, Bound) and isinstance(b, Bound):
        return a.function.node is b.function.node and alike(a.instance, b.instance, level + 1)
    return a.key == b.key


def _all_alike(a: tuple[Value, ...] | list[Value], b: tuple[Value, ...] | list[Value], level: int) -> bool:
    return len(a) == len(b) and all(alike(x, y, level + 1) for x, y in zip(a, b, strict=True))


def _of_tensor(tensor: Tensor) -> tuple[object, ...]:
    lanes = tuple((lane.mask, lane.assumed, lane.open, lane.bounded) for lane in tensor.dtypes)
    flags = (tensor.maybe, tensor.explicit, tensor.gradient, tensor.optional, tensor.unsure)
    return (lanes, tensor.dim, flags, tensor.trait)
