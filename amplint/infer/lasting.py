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
    from pathlib import Path


class Lasting(NamedTuple):
    """A value that is the same in every analysis, and the files that it was made of."""

    value: Value
    needs: frozenset[Path]


def lasts(value: Value) -> bool:
    """Whether a value holds nothing that an analysis changes, or that is its alone."""
    if isinstance(value, Class):
        return not value.closure and all(map(lasts, value.bases)) and all(map(lasts, value.members.values()))
    if isinstance(value, Function):
        return not value.closure
    if isinstance(value, Decorated):
        plain = value.autocast is None and value.cast_inputs is None and value.wrapper is None
        return plain and lasts(value.function)
    if isinstance(value, Union):
        return all(map(lasts, value.options))
    if isinstance(value, Sequence):
        return all(map(lasts, value.items if value.items is not None else (value.element,)))
    if isinstance(value, Mapping):
        return value.shared and all(map(lasts, value.items.values()))
    if isinstance(value, Builtin):
        return value.receiver is None
    return value is UNKNOWN or isinstance(value, (Const, Number, Text, TorchName, External, ModuleValue))


def shared(value: Value) -> Value:
    """A value of another file's, its dicts closed to writing and open to keys that are not seen."""
    if isinstance(value, Mapping) and not value.shared:
        return Mapping({k: shared(v) for k, v in value.items.items()}, value.other or UNKNOWN, True)
    if isinstance(value, Class):
        for name, member in value.members.items():
            if isinstance(member, Mapping):
                value.members[name] = shared(member)
    return value
