"""``dataclass`` and ``sealed``: what the standard library's ``dataclass`` does, made quickly.

That compiles up to ten functions for each class, a millisecond for each of the hundreds that a check imports, and has
objects of frozen ones set their fields by a detour. Here only ``__init__`` is compiled, for the first object, and the
rest compares the fields. That nothing sets those of frozen ones afterwards is left to the type checker; what programs
get, such as findings, is ``sealed`` and refuses it.

Type checkers are told that both make data classes, but not that they are the standard library's ``dataclass``: of the
classes of that one mypyc makes extension types, which can be given neither slots nor the functions that are made here.
"""

from __future__ import annotations

import dataclasses
import reprlib
from contextlib import contextmanager
from operator import attrgetter, ge, gt, le, lt
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "quick_libraries", "sealed"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeVar, overload

    from typing_extensions import dataclass_transform

    Made = TypeVar("Made")

    @overload
    def dataclass(cls: type[Made], /) -> type[Made]: ...
    @overload
    def dataclass(
        *, frozen: bool = False, eq: bool = True, order: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Callable[[type[Made]], type[Made]]: ...
    @dataclass_transform(field_specifiers=(dataclasses.field,))
    def dataclass(*_: Any, **__: Any) -> Any: ...

    @dataclass_transform(field_specifiers=(dataclasses.field,))
    def sealed(
        *, frozen: bool, eq: bool = True, order: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Callable[[type[Made]], type[Made]]: ...
else:

    def dataclass(cls=None, /, **options):
        return _data_class(cls, **options) if cls is not None else lambda made: _data_class(made, **options)

    def sealed(*, frozen, **options):
        return lambda made: _set(_refusing(_data_class(made, frozen=frozen, **options)), {"__reduce__": _reduce})


_standard = dataclasses.dataclass


@contextmanager
def quick_libraries() -> Iterator[None]:
    """Let libraries that are imported meanwhile get their frozen data classes from here too."""

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        if cls is None:
            return lambda made: dataclass(made, **options)
        return _refusing(_data_class(cls, frozen=True)) if options == {"frozen": True} else _standard(cls, **options)

    dataclasses.dataclass = dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = _standard


def _data_class(cls: type, *, frozen: bool = False, eq: bool = True, order: bool = False, **options: Any) -> Any:
    given = {name for name, value in cls.__dict__.items() if value is not None}
    cls.__doc__ = cls.__doc__ or cls.__qualname__  # else the standard library writes a signature there
    made: Any = _standard(cls, init=False, eq=False, repr=False, **options)
    methods: dict[str, Any] = {"__init__": _init(), "__repr__": _repr}
    names = [field.name for field in dataclasses.fields(made) if field.compare]
    if eq:
        values: Callable[[Any], Any] = attrgetter(*names) if names else _nothing
        methods |= {"__eq__": _equal(values), "__hash__": (lambda self: hash(values(self))) if frozen else None}
        if order:
            methods |= {f"__{by.__name__}__": _ordered(values, by) for by in (lt, le, gt, ge)}
    return _set(made, {name: method for name, method in methods.items() if name not in given})


def _set(made: Any, methods: Mapping[str, Any]) -> Any:
    for name, method in methods.items():
        setattr(made, name, method)
    return made


def _refusing(made: Any) -> Any:
    """The class, whose objects refuse to be changed."""
    return _set(made, {"__setattr__": _refuse, "__delattr__": _refuse})


def _refuse(self: object, name: str, *_: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))


def _init() -> Callable[..., None]:
    """An ``__init__`` that is compiled when it is first called, for the class that has it then; threads may meet."""
    compiled: list[Callable[..., None]] = []

    def init(self: Any, *values: Any, **named: Any) -> None:
        kind: Any = next((one for one in type(self).__mro__ if one.__dict__.get("__init__") is init), None)
        if kind is not None:
            compiled.append(_compiled(kind))
            kind.__init__ = compiled[0]
        compiled[0](self, *values, **named)

    return init


_MISSING = dataclasses.MISSING


def _compiled(made: Any) -> Any:
    scope: dict[str, Any] = {"_put": object.__setattr__, "_missing": _MISSING}
    placed: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    sealed = made.__setattr__ is _refuse
    for field in dataclasses.fields(made):
        name, value, default = field.name, field.name, ""
        if field.default_factory is not _MISSING:
            scope[f"{name}__made"] = field.default_factory
            value = f"{name}__made() if {name} is _missing else {name}" if field.init else f"{name}__made()"
            default = " = _missing"
        elif field.default is not _MISSING:
            scope[f"{name}__default"] = field.default
            value, default = (name if field.init else f"{name}__default"), f" = {name}__default"
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else placed).append(name + default)
        lines.append(f"_put(self, {name!r}, {value})" if sealed else f"self.{name} = {value}")
    lines += ["self.__post_init__()"] if hasattr(made, "__post_init__") else []
    taken = ", ".join(["self", *placed, *(["*", *named] if named else [])])
    exec(f"def __init__({taken}):\n " + "\n ".join(lines or ["pass"]), scope)
    scope["__init__"].__qualname__ = f"{made.__qualname__}.__init__"
    return scope["__init__"]


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
