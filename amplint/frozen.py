"""``dataclass``, for type checkers that of the standard library, made for frozen data.

That makes each class by compiling six functions, a millisecond for each of the hundreds that a check imports, and has
objects of frozen ones set their fields by a detour. Here only ``__init__`` is compiled, the rest compares the fields.
That nothing sets them afterwards is left to the type checker: findings, which programs get, are not made so.
"""

from __future__ import annotations

import dataclasses
import reprlib
from operator import attrgetter, ge, gt, le, lt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, order=False, **options):
        if not frozen:
            return dataclasses.dataclass(cls, eq=eq, order=order, **options)
        return _frozen(cls, eq, order, options) if cls is not None else lambda made: _frozen(made, eq, order, options)


def _frozen(cls: type, eq: bool, order: bool, options: dict[str, Any]) -> type:
    given = {name for name, value in cls.__dict__.items() if value is not None}
    made: Any = dataclasses.dataclass(cls, eq=False, repr=False, **options)
    methods: dict[str, Any] = {"__repr__": _repr}
    names = [field.name for field in dataclasses.fields(made) if field.compare]
    if eq:
        values: Callable[[Any], Any] = attrgetter(*names) if names else _nothing
        methods |= {"__eq__": _equal(values), "__hash__": lambda self: hash(values(self))}
        if order:
            methods |= {f"__{by.__name__}__": _ordered(values, by) for by in (lt, le, gt, ge)}
    for name, method in methods.items():
        if name not in given:
            setattr(made, name, method)
    kind: type = made
    return kind


def _nothing(_: object) -> tuple[()]:
    return ()


def _equal(values: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _ordered(values: Callable[[Any], Any], by: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def ordered(self: Any, other: Any) -> Any:
        return by(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

    return ordered


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
