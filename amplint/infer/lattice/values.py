"""Abstract values: what an expression may hold, as far as dtypes depend on it.

Every value has a ``key``: two values of one key behave alike, so a call is interpreted once for each combination of
keys. Origins are left out of keys: where a dtype came from does not change what happens to it.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from sys import float_info
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.keying import identity, keys_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable, Iterable

    from amplint.infer.lattice.dtypes import Dtypes
    from amplint.source import Source, Span


class Made(Enum):
    """How a floating dtype came about that no floating tensor had before."""

    DEFAULT = "no dtype was written, so torch took its default"
    WRITTEN = "the dtype was spelled out where the tensor was made"
    CONVERTED = "integers or booleans were cast to a dtype spelled out there"
    ADDED = "a parameter without a dtype was put beside a layer that a model already had"


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where a dtype was decided: a place, what happened there, the resulting dtypes and where those came from."""

    source: Source
    node: ast.expr | ast.stmt | ast.arg
    what: str
    dtypes: Dtypes
    parents: tuple[Origin, ...] = ()
    cast: bool = False
    """A dtype written into the source: ``.float()``, ``.to(torch.float32)``, ``dtype=torch.float32``."""
    autocast: int = 0
    """A bit for each scenario in which autocast chose the dtype."""
    placed: bool = False
    """A parameter or buffer, made part of its module here."""
    made: Made | None = None
    """A tensor that begins here, and does not take its dtype from another one."""
    parameter: bool = False
    """The parameter of a module, as it is."""
    handed: bool = False
    """Of a model that is converted by whoever hands it, or a layer of it, to this code."""
    kept: bool = False
    """Stored in an object as a buffer or a plain attribute, for other methods to use."""
    empty: bool = False
    """A tensor is made without elements here."""

    @property
    def filename(self) -> str:
        return str(self.source.path)

    @property
    def span(self) -> Span:
        return self.source.span(self.node)


class Value:
    """Something a name may be bound to."""

    __slots__ = ()

    @property
    def key(self) -> Hashable:
        return identity(self)

    @property
    def rests_on(self) -> Iterable[Value] | None:
        """The values that have to be the same in every analysis for this one to be; None where it is not, whatever
        they are."""
        return None

    def closed(self, done: dict[int, Mapping]) -> Value:
        """The value as another file sees it, its dicts closed to writing and open to keys that are not seen.

        ``done`` holds those made so far, by ``id`` of what they are made of: a dict may hold itself.
        """
        return self

    def let_go(self, holder: object) -> None:
        """The module that defined it holds it no longer."""


class _Unknown(Value):
    __slots__ = ()

    @property
    def rests_on(self) -> Iterable[Value] | None:
        return () if self is UNKNOWN else None

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()
NEVER = _Unknown()
"""What a call gives that does not come back."""


@dataclass(frozen=True, slots=True)
class Const(Value):
    """A Python literal: number, string, bytes, None, Ellipsis."""

    value: object

    @property
    def key(self) -> Hashable:
        return (type(self.value), self.value)

    @property
    def rests_on(self) -> Iterable[Value]:
        return ()


NONE = Const(None)


@dataclass(frozen=True, slots=True)
class Text(Value):
    """A string that a caller may choose: ``usual`` where it passes none.

    It selects from registries; comparisons with it stay open.
    """

    usual: str

    @property
    def key(self) -> Hashable:
        return ("text", self.usual)

    @property
    def rests_on(self) -> Iterable[Value]:
        return ()


LARGE, SMALL = 60000.0, 1e-3
"""Numbers beyond these are kept where others are forgotten: half precision may not hold them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of dtypes: ``torch.finfo(x.dtype).min``."""

    name: str
    dtypes: Dtypes
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Number(Value):
    """A Python number that is not known: ``kind`` is bool, int or float. ``usual`` where a caller passes no other.

    ``extreme``: what it is, or usually is, for numbers that half precision may not hold and for limits of dtypes.
    """

    kind: str
    usual: float | None = None
    extreme: float | Limit | None = None

    @property
    def key(self) -> Hashable:
        if self.extreme is not None:
            return ("number", self.kind, self.usual, self.extreme)
        return ("number", self.kind) if self.usual is None else ("number", self.kind, self.usual)

    @property
    def rests_on(self) -> Iterable[Value]:
        return ()


def extreme(value: object) -> float | None:
    """A number that half precision may not hold, as a float; None for every other value."""
    if type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            return None
    elif type(value) is float:
        number = value
    else:
        return None
    size = abs(number)
    return number if LARGE < size <= float_info.max or 0 < size < SMALL else None


def extreme_of(value: Value | None) -> float | Limit | None:
    """What a number is, or usually is, where that is extreme."""
    if isinstance(value, Number):
        return value.extreme
    return extreme(value.value) if isinstance(value, Const) else None


@dataclass(frozen=True, slots=True, eq=False)
class FloatLimits(Value):
    """``torch.finfo`` of a dtype."""

    dtypes: Dtypes

    @property
    def key(self) -> Hashable:
        return ("finfo", self.dtypes)


class Trait(Enum):
    """What is known of a tensor's values, where range or precision depends on it."""

    COUNT = "counts up: positions, shifted or scaled by a number"
    ONES = "all one"
    EQUAL = "all the same number, of which low precision holds some hundred times as much"
    SQUARE = "squares"
    SPREAD = "sums and means of squares"
    POSITIVE = "not negative"
    NEGATIVE = "not positive"
    BOUNDED = "small whatever the input"
    SHARE = "between 0 and 1, and as near to both as the input has it"
    REST = "what such numbers leave of 1"
    LARGEST = "the largest of others, or above"
    EXPONENTIAL = "exponentials, not negative"
    DECAY = "negated exponentials"
    BUCKET = "gradients that are on their way between processes"
    BUCKET_SQUARE = "squares of such gradients"
    SPARSE = "held with the coordinates of their places (COO), the others being zero"
    COMPRESSED = "held by rows, columns or blocks, the others being zero"


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Value):
    """A tensor: its dtype in every scenario.

    ``dim`` is 0 for a 0-dim tensor, 1 with dimensions, None where unknown. ``maybe``: an argument that need not be a
    tensor at all (it may be None or a number) or may be an integer one. ``explicit``: made with a dtype written in the
    code, which survives in scenarios that keep explicit dtypes. ``leaf``: a parameter. ``gradient``: a gradient handed
    to ``backward``. ``optional``: None on another path. ``unsure``: on another path nothing is known of it, or of what
    it comes from, or that is a number. ``trait``: what its values are like. ``host``: True where it is made in the
    host's memory, or of what is, so autocast does not act on it but for the host's own; False where it lies on the
    device that is judged, as a model's parameters and what is computed with them; None where nobody knows. ``number``:
    the extreme number that a 0-dim one was made of, in a dtype that holds it.
    """

    dtypes: Dtypes
    dim: int | None = None
    origin: Origin | None = None
    maybe: bool = False
    explicit: bool = False
    leaf: bool = False
    gradient: bool = False
    optional: bool = False
    trait: Trait | None = None
    unsure: bool = False
    host: bool | None = None
    number: float | Limit | None = None

    @property
    def key(self) -> Hashable:
        flags = (self.maybe, self.explicit, self.gradient, self.optional, self.unsure, self.host)
        return ("tensor", self.dtypes, self.dim, flags, self.trait, self.number)

    @property
    def part(self) -> Tensor:
        """One of those that going through it gives."""
        return Tensor(self.dtypes, None, self.origin, host=self.host)


@dataclass(frozen=True, slots=True, eq=False)
class DTypeValue(Value):
    """A ``torch.dtype``; ``written``: spelled as a literal such as ``torch.float32``."""

    dtypes: Dtypes
    written: bool = False
    origin: Origin | None = None

    @property
    def key(self) -> Hashable:
        return ("dtype", self.dtypes, self.written)


@dataclass(frozen=True, slots=True, eq=False)
class Device(Value):
    """A ``torch.device`` or its type as a string; ``type`` is None where it follows a tensor."""

    type: str | None = None

    @property
    def key(self) -> Hashable:
        return ("device", self.type)


@dataclass(frozen=True, slots=True, eq=False)
class Sequence(Value):
    """A tuple or list: its items where their number is known, else the join of all as ``element``.

    ``head`` and ``tail`` are the first and last items of one whose number of items is not known; ``between``: the join
    of those between them, where that is known to be less than ``element``. ``made``: the branch that a list was made
    in, as ``Frame.block``.
    """

    items: tuple[Value, ...] | None
    element: Value = UNKNOWN
    mutable: bool = False
    head: tuple[Value, ...] = ()
    tail: tuple[Value, ...] = ()
    made: int = 0
    between: Value | None = None

    @property
    def key(self) -> Hashable:
        if self.items is not None:
            return ("seq", keys_of(self, self.items, len(self.items)))
        held = self._held
        return ("seqof", len(self.head), len(self.tail), keys_of(self, held, len(held)))

    @property
    def _held(self) -> tuple[Value, ...]:
        """What one holds whose number of items is not known."""
        held = (self.element, *self.head, *self.tail)
        return (*held, self.between) if self.between is not None else held

    @property
    def middle(self) -> Value:
        """What an item of one is whose number of items is not known, that is none of the first and last known ones."""
        return self.between if self.between is not None else self.element

    @property
    def rests_on(self) -> Iterable[Value]:
        return self.items if self.items is not None else self._held

    def at(self, index: int) -> Value | None:
        """The item at an index; None where it is not known which that is, or there is none."""
        known = self.items if self.items is not None else self.head if index >= 0 else self.tail
        return known[index] if -len(known) <= index < len(known) else None


@dataclass(slots=True, eq=False)
class Mapping(Value):
    """A dict: values under known keys, and the join of the others.

    ``shared``: it belongs to another file of the project, where anything may be added to it, so what is written into it
    here is not followed.
    """

    items: dict[object, Value]
    other: Value | None = None
    shared: bool = False
    loose: bool = False
    """Not every key need be there, nor in this order: some were written on some paths only."""
    maker: int = 0
    """The number of the activation that made it, 0 where that is not known or it was made of others."""
    inside: int = 0
    """The number of the activation in which it was made of others, 0 where that is not known."""

    @property
    def key(self) -> Hashable:
        held = keys_of(self, self.items.values(), len(self.items))
        names = tuple(self.items) if isinstance(held, tuple) else ()
        return ("map", names, held, keys_of(self, (self.other,), 1) if self.other else None)

    @property
    def rests_on(self) -> Iterable[Value] | None:
        return self.items.values() if self.shared else None

    def closed(self, done: dict[int, Mapping]) -> Value:
        if self.shared:
            return self
        made = done.get(id(self))
        if made is None:
            made = done[id(self)] = Mapping({}, self.other or UNKNOWN, True)
            made.items.update({key: held.closed(done) for key, held in self.items.items()})
        return made

    def update(self, given: Value) -> None:
        """Take over what another mapping holds; anything else may hold whatever it likes."""
        if isinstance(given, Mapping):
            self.items.update(given.items)
            self.other = given.other or self.other
        else:
            self.other = UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class TorchName(Value):
    """A torch function, class or module, by qualified name."""

    name: str

    @property
    def key(self) -> Hashable:
        return ("torch", self.name)

    @property
    def rests_on(self) -> Iterable[Value]:
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class External(Value):
    """Something of a library that is neither torch nor the project, by qualified name."""

    name: str

    @property
    def key(self) -> Hashable:
        return ("external", self.name)

    @property
    def rests_on(self) -> Iterable[Value]:
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Layer(Value):
    """An instance of a ``torch.nn`` class: its parameters' values by name, and its children for containers.

    ``span`` is its constructor, None where unseen; ``options`` are that one's arguments, kept for transformer layers.
    """

    name: str
    tensors: dict[str, Value] = field(default_factory=dict)
    children: Value | None = None
    span: Span | None = None
    options: dict[str, Value] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        children = self.children.key if self.children else None
        held = keys_of(self, self.tensors.values(), len(self.tensors))
        return ("layer", self.name, tuple(self.tensors), held, children)


@dataclass(frozen=True, slots=True, eq=False)
class Partial(Value):
    """``functools.partial(callee, ...)``."""

    callee: Value
    args: tuple[Value, ...]
    keywords: dict[str, Value]

    @property
    def key(self) -> Hashable:
        held = (self.callee, *self.args, *self.keywords.values())
        return ("partial", len(self.args), tuple(self.keywords), keys_of(self, held, len(held)))


@dataclass(frozen=True, slots=True, eq=False)
class TensorMethod(Value):
    """A method of a tensor, not yet called."""

    tensor: Tensor
    name: str
    node: ast.expr | None = None

    @property
    def key(self) -> Hashable:
        return ("method", self.name, self.tensor.key)


@dataclass(frozen=True, slots=True, eq=False)
class Builtin(Value):
    """A Python builtin or a method of a Python value that the interpreter knows, as a handler."""

    name: str
    receiver: Value | None = None

    @property
    def key(self) -> Hashable:
        return ("builtin", self.name, self.receiver.key if self.receiver else None)

    @property
    def rests_on(self) -> Iterable[Value] | None:
        return () if self.receiver is None else None


@dataclass(frozen=True, slots=True, eq=False)
class Union(Value):
    """One of several values, for kinds that do not join: layers, instances, None beside a tensor."""

    options: tuple[Value, ...]

    @property
    def key(self) -> Hashable:
        return ("union", keys_of(self, self.options, len(self.options)))

    @property
    def rests_on(self) -> Iterable[Value]:
        return self.options
