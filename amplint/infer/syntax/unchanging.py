"""Data classes that the type checker keeps from changing, made in a third of the time that frozen ones take."""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

__all__ = ["replace", "unchanging"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as unchanging
    from dataclasses import replace

    Made = TypeVar("Made")
else:
    _READ: dict[type, tuple[Callable[[object], tuple[object, ...]], dict[str, int]]] = {}

    def replace(value: Made, /, **changes: object) -> Made:
        """``dataclasses.replace`` in a third of its time, for data classes whose fields are all given by position."""
        kind = value.__class__
        known = _READ.get(kind)
        if known is None:
            names = [field.name for field in dataclasses.fields(kind)]
            read = attrgetter(*names) if len(names) > 1 else lambda made: (getattr(made, names[0]),)
            known = _READ[kind] = read, {name: place for place, name in enumerate(names)}
        read, places = known
        values = [*read(value)]
        for name, new in changes.items():
            values[places[name]] = new
        return kind(*values)

    def unchanging(*, frozen: bool, slots: bool, eq: bool = True) -> Callable[[type[Made]], type[Made]]:
        """``dataclass`` with these options, ``frozen`` checked before the program runs and not while it does.

        A frozen class sets each field by a call of ``object.__setattr__``, and values are made all the time.
        """
        assert frozen
        return dataclasses.dataclass(slots=slots, eq=eq, unsafe_hash=eq)
