"""Decorators that change how a function runs: autocast regions, ``custom_fwd`` and ``custom_bwd``, descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.values import DTypeValue, Value
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.lattice.contexts import AutocastContext


@dataclass(frozen=True, slots=True, eq=False)
class Decorated(Value):
    """A function behind a decorator that changes how it runs.

    ``autocast`` is a region around the body; ``role`` is forward or backward for ``custom_fwd``/``custom_bwd``;
    ``cast_inputs`` is what floating arguments are cast to under autocast, which is off in the body then: all of them,
    or the parameters ``casts``. ``kind`` is one of property, static, class for the descriptors, opaque for a decorator
    that is not understood: the body is judged on its own, but what a call gives is unknown. ``wrapper`` is the function
    of the project that the decorator put in its place.
    """

    function: Value
    autocast: AutocastContext | None = None
    role: str | None = None
    cast_inputs: DTypeValue | None = None
    casts: tuple[str, ...] | None = None
    kind: str | None = None
    wrapper: Value | None = None

    @property
    def key(self) -> Hashable:
        autocast, wrapper = self.autocast, self.wrapper
        return (
            *("decorated", self.function.key, self.role, self.kind),
            *(autocast.key if autocast else None, wrapper.key if wrapper else None),
        )

    @property
    def of_no_effect(self) -> bool:
        """Whether a call is judged as one of the function itself."""
        return self.role is None and self.wrapper is None and not self.makes_region

    @property
    def makes_region(self) -> bool:
        """Whether autocast is another in the body than where it is called."""
        return self.autocast is not None or self.cast_inputs is not None

    @property
    def rests_on(self) -> Iterable[Value] | None:
        plain = self.autocast is None and self.cast_inputs is None and self.wrapper is None
        return (self.function,) if plain else None


@dataclass(frozen=True, slots=True, eq=False)
class CustomDecorator(Value):
    """``custom_fwd(...)`` or ``custom_bwd(...)`` that waits for its function, or what casts the arguments of any
    function as ``custom_fwd`` does, whose ``role`` is None."""

    role: str | None
    cast_inputs: DTypeValue | None = None
    casts: tuple[str, ...] | None = None

    @property
    def key(self) -> Hashable:
        return ("custom", self.role, self.cast_inputs.key if self.cast_inputs else None, self.casts)


def in_its_regions(value: Value) -> Value:
    """A function behind those of its decorators that make a region: how its body runs, whatever else is around it."""
    if not isinstance(value, Decorated):
        return value
    inner = in_its_regions(value.function)
    return replace(value, function=inner, kind=None, wrapper=None) if value.makes_region else inner


def custom_decorator(name: str, arguments: Arguments) -> Value:
    """What calling ``custom_fwd`` or ``custom_bwd`` gives: the decorated function, or a decorator."""
    role = "forward" if name.endswith("fwd") else "backward"
    cast = arguments.keywords.get("cast_inputs")
    cast_inputs = cast if isinstance(cast, DTypeValue) else None
    if arguments.positional:
        return Decorated(arguments.positional[0], role=role, cast_inputs=cast_inputs)
    return CustomDecorator(role, cast_inputs)
