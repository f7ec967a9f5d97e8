"""How data classes that do not change are made anew."""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

__all__ = ["replace"]

if TYPE_CHECKING:
    from collections.abc import Callable
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
