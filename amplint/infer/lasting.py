"""Values of other files that are the same in every analysis, so that they are evaluated once for a whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.decorators import Decorated
from amplint.infer.values import (
    UNKNOWN,
    Builtin,
    Class,
    Const,
    External,
    Function,
    Mapping,
    ModuleValue,
    Number,
    Sequence,
    Text,
    TorchName,
    Union,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Lasting(NamedTuple):
    """A value that is the same in every analysis, and the files that it was made of."""

    value: Value
    needs: frozenset[Path]


MAX_HELD = 20_000
"""Values inside another that are looked at to find out whether it lasts."""


def lasts(value: Value) -> bool:
    """Whether a value holds nothing that an analysis changes, or that is its alone."""
    pending, looked = [value], 0
    while pending:
        looked += 1
        held = _held(pending.pop()) if looked <= MAX_HELD else None
        if held is None:
            return False
        pending.extend(held)
    return True


def _held(value: Value) -> Iterable[Value] | None:
    """The values inside one that have to last for it to do so; None where it does not itself."""
    if isinstance(value, Class):
        return (*value.bases, *value.members.values()) if not value.closure else None
    if isinstance(value, Function):
        return () if not value.closure else None
    if isinstance(value, Decorated):
        plain = value.autocast is None and value.cast_inputs is None and value.wrapper is None
        return (value.function,) if plain else None
    if isinstance(value, Union):
        return value.options
    if isinstance(value, Sequence):
        return value.items if value.items is not None else (value.element,)
    if isinstance(value, Mapping):
        return value.items.values() if value.shared else None
    if isinstance(value, Builtin):
        return () if value.receiver is None else None
    lasting = value is UNKNOWN or isinstance(value, (Const, Number, Text, TorchName, External, ModuleValue))
    return () if lasting else None


def shared(value: Value, done: dict[int, Mapping] | None = None) -> Value:
    """A value of another file's, its dicts closed to writing and open to keys that are not seen.

    ``done`` holds those made so far, by ``id`` of what they are made of: a dict may hold itself.
    """
    if isinstance(value, Mapping) and not value.shared:
        done = {} if done is None else done
        made = done.get(id(value))
        if made is None:
            made = done[id(value)] = Mapping({}, value.other or UNKNOWN, True)
            made.items.update({key: shared(held, done) for key, held in value.items.items()})
        return made
    if isinstance(value, Class):
        for name, member in value.members.items():
            if isinstance(member, Mapping):
                value.members[name] = shared(member)
    return value
