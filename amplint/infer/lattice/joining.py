"""What holds where two paths meet: values joined, or united where they do not join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from amplint.infer.lattice.contexts import AutocastFlag, AutogradContext
from amplint.infer.lattice.dtypes import join, select
from amplint.infer.lattice.traits import joined_trait
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    Mapping,
    Number,
    Origin,
    Sequence,
    Tensor,
    Union,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

MAX_UNITED = 24
"""Values, of a registry say, that are looked at to find out whether they are alike."""
MAX_OPTIONS = 8
"""Alternatives of a union that are followed; with more it is unknown."""


class Budget(Protocol):
    """The analysis that joins values, as far as that depends on it."""

    all_lanes: int
    """A bit for each scenario."""
    frames: int
    """The number of the activation that was begun last."""

    def spend(self, values: int) -> None:
        """Take from the budget what handling so many values inside others costs. Raises OutOfBudget."""


def merge(session: Budget, a: Value, a_live: int, b: Value, b_live: int) -> Value:
    """The value after two paths meet, each live in some scenarios."""
    if a is b:
        return a
    if not b_live:
        return a
    if not a_live:
        return b
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return join_tensors(a, a_live, b, b_live)
    if isinstance(a, DTypeValue) and isinstance(b, DTypeValue):
        return _join_dtypes(a, a_live, b, b_live)
    if kind_of(a) is kind_of(b) and a.key == b.key:
        return a
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return _join_sequences(session, a, a_live, b, b_live)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = {**a.items, **b.items}
        session.spend(len(keys))
        items = {
            k: merge(session, a.items.get(k, NONE), a_live, b.items.get(k, NONE), b_live)
            if k in a.items and k in b.items
            else a.items.get(k, b.items.get(k, UNKNOWN))
            for k in keys
        }
        loose = a.loose or b.loose or list(a.items) != list(b.items)
        return Mapping(items, a.other or b.other, loose=loose, maker=session.frames)
    if is_answer(a) and is_answer(b) and (a_live != b_live or AutocastFlag in (type(a), type(b))):
        first, second = _flag(a, a_live), _flag(b, b_live)
        return AutocastFlag(first.on | second.on, first.off | second.off)
    numbers = (Const, Number)
    if isinstance(a, numbers) and isinstance(b, numbers):
        kinds = {number_kind(a), number_kind(b)}
        if None not in kinds and "str" not in kinds:
            return Number("float" if "float" in kinds else "int" if "int" in kinds else "bool")
    if isinstance(a, Device) and isinstance(b, Device):
        return Device(None)
    if isinstance(a, AutogradContext):
        return a
    return unite(a, b)


def kind_of(value: Value) -> type[Value]:
    """A class of values: those of one never have a key that those of another have."""
    return Sequence if isinstance(value, Sequence) else type(value)


def is_answer(value: Value) -> bool:
    """Whether a value is true or false itself, not something that is taken to be."""
    flag = isinstance(value, Const) and isinstance(value.value, bool)
    return flag or isinstance(value, AutocastFlag) or (isinstance(value, Number) and value.key == ("number", "bool"))


def _flag(answer: Value, live: int) -> AutocastFlag:
    """An answer, as far as it is given in these scenarios."""
    if isinstance(answer, AutocastFlag):
        return AutocastFlag(answer.on & live, answer.off & live)
    known = answer.value if isinstance(answer, Const) else None
    return AutocastFlag(0 if known is False else live, 0 if known is True else live)


def number_kind(value: Const | Number) -> str | None:
    """bool, int, float, or None for what is no number."""
    if isinstance(value, Number):
        return value.kind
    if isinstance(value.value, bool):
        return "bool"
    if isinstance(value.value, int):
        return "int"
    if isinstance(value.value, float):
        return "float"
    return None


def join_tensors(a: Tensor, a_live: int, b: Tensor, b_live: int) -> Tensor:
    """Two tensors that meet, lane by lane."""
    if a_live == b_live:
        dtypes = join(a.dtypes, b.dtypes)
    else:
        dtypes = select(a_live & b_live, join(a.dtypes, b.dtypes), select(a_live, a.dtypes, b.dtypes))
    if dtypes == a.dtypes:
        origin = a.origin
    elif dtypes == b.dtypes:
        origin = b.origin
    else:
        origins = tuple(o for o in (a.origin, b.origin) if o is not None)
        origin = Origin(origins[0].source, origins[0].node, "", dtypes, origins) if origins else None
    return Tensor(
        dtypes,
        a.dim if a.dim == b.dim else None,
        origin,
        a.maybe or b.maybe,
        a.explicit and b.explicit,
        a.leaf and b.leaf,
        a.gradient or b.gradient,
        trait=joined_trait(a.trait, b.trait),
        unsure=a.unsure or b.unsure,
        host=a.host if a.host is b.host else None,
    )


def _join_dtypes(a: DTypeValue, a_live: int, b: DTypeValue, b_live: int) -> DTypeValue:
    joined = select(a_live & b_live, join(a.dtypes, b.dtypes), select(a_live, a.dtypes, b.dtypes))
    return DTypeValue(joined, a.written and b.written, a.origin or b.origin)


def _join_sequences(session: Budget, a: Sequence, a_live: int, b: Sequence, b_live: int) -> Sequence:
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        session.spend(len(a.items))
        items = tuple(merge(session, x, a_live, y, b_live) for x, y in zip(a.items, b.items, strict=True))
        return Sequence(items, mutable=a.mutable)
    if not a.items and a.items is not None:
        return Sequence(None, element_of(session, b), b.mutable)
    if not b.items and b.items is not None:
        return Sequence(None, element_of(session, a), a.mutable)
    element = merge(session, element_of(session, a), a_live, element_of(session, b), b_live)
    firsts = list(zip(_head_of(a), _head_of(b), strict=False))
    session.spend(len(firsts))
    return Sequence(None, element, a.mutable, tuple(merge(session, x, a_live, y, b_live) for x, y in firsts))


def _head_of(sequence: Sequence) -> tuple[Value, ...]:
    """The first items that a sequence surely has."""
    return sequence.items if sequence.items is not None else sequence.head


def element_of(session: Budget, sequence: Sequence) -> Value:
    """The join of a sequence's items."""
    if sequence.items is None:
        return sequence.element
    if not sequence.items:
        return UNKNOWN
    session.spend(len(sequence.items))
    value = sequence.items[0]
    for item in sequence.items[1:]:
        value = merge(session, value, session.all_lanes, item, session.all_lanes)
    return value


MAX_LENGTH = 4_096
"""Items of a sequence made of others up to which they are told apart."""


def concatenated(session: Budget, a: Sequence, b: Sequence) -> Sequence:
    """The items of one sequence behind those of another, as a sequence of the first one's kind."""
    if a.items is not None and b.items is not None and len(a.items) + len(b.items) <= MAX_LENGTH:
        return Sequence(a.items + b.items, mutable=a.mutable)
    elements = [element_of(session, part) for part in (a, b) if part.items != ()]
    head = a.head if a.items is None else a.items + b.head
    tail = b.tail if b.items is None else a.tail + b.items
    between = a.middle if b.items is not None else b.middle if a.items is not None else None
    return Sequence(None, unite(*elements), a.mutable, head, tail, between=between)


def unite(*values: Value) -> Value:
    """A union of values that do not join, flat and without repetition."""
    if len(values) == 1:
        return values[0]
    if len(values) > MAX_UNITED:
        return UNKNOWN
    options, kinds = _distinct(values)
    if len(options) == 1:
        return options[0]
    if kinds.count(Tensor) > 1:
        tensors = [o for o in options if isinstance(o, Tensor)]
        joined: Tensor = tensors[0]
        for tensor in tensors[1:]:
            joined = join_tensors(joined, -1, tensor, -1)
        options = [joined, *(o for o in options if not isinstance(o, Tensor))]
    if kinds.count(DTypeValue) > 1:
        dtypes = [o for o in options if isinstance(o, DTypeValue)]
        either = dtypes[0]
        for dtype in dtypes[1:]:
            either = _join_dtypes(either, -1, dtype, -1)
        options = [either, *(o for o in options if not isinstance(o, DTypeValue))]
    if len(options) == 1:
        return options[0]
    return Union(tuple(options)) if len(options) <= MAX_OPTIONS and _is_small(options) else UNKNOWN


def _distinct(values: tuple[Value, ...]) -> tuple[list[Value], list[type[Value]]]:
    """The alternatives of values, the first of each key, and their kinds.

    Keys, which may take long to make, are made for several of one kind alone.
    """
    found = list({id(option): option for value in values for option in options_of(value)}.values())
    kinds = list(map(kind_of, found))
    if len(found) == len({*kinds}):
        return found, kinds
    by_key: dict[Hashable, Value] = {}
    for option in found:
        by_key.setdefault(option.key, option)
    found = list(by_key.values())
    return found, list(map(kind_of, found))


MAX_NESTED = 150
"""Values nested in a union: lists of lists that a loop keeps wrapping would grow without end."""


def _is_small(options: list[Value]) -> bool:
    pending = list(options)
    seen = 0
    while pending:
        seen += 1
        if seen > MAX_NESTED:
            return False
        value = pending.pop()
        if isinstance(value, Union):
            pending.extend(value.options)
        elif isinstance(value, Sequence):
            pending.extend(value.items if value.items is not None else (value.element,))
        elif isinstance(value, Mapping):
            pending.extend(value.items.values())
    return True


def is_none(value: Value) -> bool:
    """Whether a value is surely None."""
    return isinstance(value, Const) and value.value is None


def options_of(value: Value) -> tuple[Value, ...]:
    """The alternatives of a value."""
    return value.options if isinstance(value, Union) else (value,)
