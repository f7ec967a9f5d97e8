"""What the source of a project defines: functions, classes, and the objects and methods of these."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from amplint.frozen import dataclass
from amplint.infer.lattice.keying import identity
from amplint.infer.lattice.values import Mapping, Value

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable, Iterable

    from amplint.infer.names.namespace import Namespace
    from amplint.infer.syntax.bodies import FunctionNode


class Enclosing(Protocol):
    """The activation of a function in which others are defined."""

    variables: dict[str, Value]

    @property
    def outer(self) -> Enclosing | None:
        """The one around it."""

    def bind(self, name: str, value: Value) -> None:
        """Give a variable a value."""

    def may_raise(self) -> None:
        """Note that what runs next may raise."""


@dataclass(frozen=True, slots=True, eq=False)
class Function(Value):
    """A function written in the project.

    ``closure`` holds the enclosing functions' variables; ``owner`` is the class whose body defines it. ``late``: those
    that the function around it, which ran as ``frame``, binds behind the definition.
    """

    node: FunctionNode
    namespace: Namespace
    closure: dict[str, Value] | None = None
    owner: Class | None = None
    name: str = "<lambda>"
    frame: Enclosing | None = None
    late: frozenset[str] = frozenset()

    @property
    def key(self) -> Hashable:
        if not self.closure:
            return ("function", id(self.node))
        return ("function", id(self.node), identity(self.closure))

    @property
    def rests_on(self) -> Iterable[Value] | None:
        return () if not self.closure else None


@dataclass(frozen=True, slots=True, eq=False)
class Bound(Value):
    """A method with its instance."""

    function: Function
    instance: Value

    @property
    def key(self) -> Hashable:
        return ("bound", self.function.key, self.instance.key)


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class written in the project. ``members`` are its body's bindings; ``bases`` resolved where possible."""

    node: ast.ClassDef
    namespace: Namespace
    name: str
    bases: tuple[Value, ...]
    members: dict[str, Value] = field(default_factory=dict)
    closure: dict[str, Value] | None = None
    lineage: tuple[Value, ...] | None = None
    """The class and its bases, once they were asked for."""
    torch_base: str | None = None
    """The torch class that it derives from, empty for none, once that was asked."""
    retrofit: bool | None = None
    """Whether its objects add to a layer that was there before them, once that was asked."""

    @property
    def key(self) -> Hashable:
        return ("class", id(self.node))

    @property
    def rests_on(self) -> Iterable[Value] | None:
        return (*self.bases, *self.members.values()) if not self.closure else None

    def closed(self, done: dict[int, Mapping]) -> Value:
        for name, member in self.members.items():
            if isinstance(member, Mapping):
                self.members[name] = member.closed({})
        return self

    def let_go(self, holder: object) -> None:
        """It refers to its methods and they to it, so they are taken apart."""
        if self.namespace is holder:
            self.members.clear()


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An object of a project class. ``attributes`` is what its methods assigned so far."""

    cls: Class
    attributes: dict[str, Value] = field(default_factory=dict)
    open: bool = False
    """Attributes may exist that the inference did not see set (an unknown base class, ``setattr``)."""
    chosen: dict[str, dict[int, Value]] = field(default_factory=dict)
    """What its constructor set attributes to, by ``id`` of the branch in which it did; 0 outside of all."""


@dataclass(frozen=True, slots=True, eq=False)
class Super(Value):
    """``super()`` inside a method."""

    instance: Value
    owner: Class
