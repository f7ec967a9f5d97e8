"""The lattice of dtypes: what is known of one dtype in every scenario at once.

A :class:`Lane` is what is known in one scenario: a set of possible dtypes (a bit mask, 0 when unknown), the
:class:`Symbol` whose dtype it is, and whether the set was assumed of a caller. A :data:`Dtypes` is one lane a scenario.
Promotion follows ``torch.promote_types`` and ``torch.result_type``; ``tests/test_dtypes.py`` holds it against torch.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

NAMES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
)
"""The dtypes followed, by torch name; any other (float8, quantised) is unknown."""

ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
}

BITS = {name: 1 << index for index, name in enumerate(NAMES)} | {
    alias: 1 << NAMES.index(name) for alias, name in ALIASES.items()
}

UNKNOWN_MASK = 0
BOOL = BITS["bool"]
INTEGERS = BITS["uint8"] | BITS["int8"] | BITS["int16"] | BITS["int32"] | BITS["int64"]
FLOAT16, BFLOAT16 = BITS["float16"], BITS["bfloat16"]
FLOAT32, FLOAT64 = BITS["float32"], BITS["float64"]
LOW = FLOAT16 | BFLOAT16
AUTOCASTABLE = LOW | FLOAT32
FLOATS = AUTOCASTABLE | FLOAT64
COMPLEX_HALF = BITS["complex32"]
COMPLEX = COMPLEX_HALF | BITS["complex64"] | BITS["complex128"]
_WIDE = FLOAT32 | FLOAT64 | COMPLEX & ~COMPLEX_HALF

CASTS = {name: BITS[name] for name in ("half", "float", "double", "bfloat16", "int", "long", "short", "bool")} | {
    "byte": BITS["uint8"],
    "char": BITS["int8"],
    "cfloat": BITS["complex64"],
    "cdouble": BITS["complex128"],
}
"""Methods of tensors named after the dtype that they cast to."""


def names_of(mask: int) -> list[str]:
    """The torch names in a mask, narrow to wide."""
    return [name for index, name in enumerate(NAMES) if mask >> index & 1]


def bits_of(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit


class Symbol:
    """The dtype of one thing the inference does not see built: an argument, an attribute. Equal only to itself."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Symbol({self.name})"


class Bound(IntEnum):
    """How surely whatever is possible holds float32."""

    NONE = 0
    ASSUMED = 1
    """What it was combined with is a tensor or a number, as next to everything is that meets a tensor."""
    SURE = 2


class Lane(NamedTuple):
    """One scenario's knowledge.

    ``assumed``: the mask is what a caller is taken to pass, not what the code forces. ``open``: other dtypes than those
    of the mask are possible too, on paths that the inference cannot follow; with an empty mask nothing is known.
    ``forced``: of an assumed mask, what the code itself gives on some path. ``bounded``: of an open one, how surely
    whatever is possible holds float32: what a float32 tensor promotes to beside anything.
    """

    mask: int = UNKNOWN_MASK
    symbol: Symbol | None = None
    assumed: bool = False
    open: bool = False
    forced: int = UNKNOWN_MASK
    bounded: Bound = Bound.NONE

    @property
    def certain(self) -> int:
        """The dtypes that the code gives on some path, whatever callers pass."""
        return self.forced if self.assumed else self.mask

    @property
    def exact(self) -> bool:
        """Exactly one dtype is possible."""
        return not self.open and self.mask != 0 and self.mask & (self.mask - 1) == 0

    @property
    def known(self) -> bool:
        """Every possible dtype is in the mask."""
        return self.mask != 0 and not self.open

    @property
    def wide(self) -> Bound:
        """Whether the code makes it float32, or what holds float32: never an integer or 16 bit, whatever callers
        pass."""
        known = self.mask & FLOAT32 and not (self.mask & ~_WIDE or self.open or self.assumed)
        return Bound.SURE if known else self.bounded

    @property
    def named(self) -> int:
        """The dtypes to name it by: the narrowest possible one where it is only bounded."""
        return self.mask or (FLOAT32 if self.bounded else UNKNOWN_MASK)


UNKNOWN_LANE = Lane(open=True)
BOUNDED_LANE = Lane(open=True, bounded=Bound.SURE)
Dtypes = tuple[Lane, ...]


def category(bit: int) -> int:
    """0 bool, 1 integer, 2 floating, 3 complex: the order in which torch promotes."""
    if bit == BOOL:
        return 0
    if bit & INTEGERS:
        return 1
    return 2 if bit & FLOATS else 3


_COMPLEX_OF = {
    FLOAT16: BITS["complex32"],
    BFLOAT16: BITS["complex64"],
    FLOAT32: BITS["complex64"],
    FLOAT64: BITS["complex128"],
}
_REAL_OF = {BITS["complex32"]: FLOAT16, BITS["complex64"]: FLOAT32, BITS["complex128"]: FLOAT64}


@cache
def promote_types(a: int, b: int) -> int:
    """``torch.promote_types`` on single bits."""
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    rank_low, rank_high = category(low), category(high)
    if rank_high == 3:
        if rank_low < 2:
            return high
        complex_low = _COMPLEX_OF[low] if rank_low == 2 else low
        return max(complex_low, high)
    if rank_low != rank_high:
        return high
    if rank_high == 2:
        return FLOAT32 if {a, b} == {FLOAT16, BFLOAT16} else max(a, b)
    uint8, int8 = BITS["uint8"], BITS["int8"]
    return BITS["int16"] if {a, b} == {uint8, int8} else max(a, b)


def real_of(mask: int) -> int:
    """The dtypes of the real parts."""
    return _union(_REAL_OF.get(bit, bit) for bit in bits_of(mask))


def complex_of(mask: int) -> int:
    """The complex dtypes that hold these floating ones."""
    return _union(_COMPLEX_OF.get(bit, BITS["complex64"] if not bit & COMPLEX else bit) for bit in bits_of(mask))


def _union(bits: Iterable[int]) -> int:
    mask = 0
    for bit in bits:
        mask |= bit
    return mask


@cache
def result_type(a: int, a_dim: int | None, b: int, b_dim: int | None) -> int:
    """``torch.result_type`` of two masks.

    ``dim`` is 0 for a 0-dim tensor, 1 for one with dimensions, None where that is not known (both are then possible).
    """
    if not a or not b:
        return UNKNOWN_MASK
    mask = 0
    for x in bits_of(a):
        for y in bits_of(b):
            for x_dim in (0, 1) if a_dim is None else (a_dim,):
                for y_dim in (0, 1) if b_dim is None else (b_dim,):
                    mask |= _result_bit(x, x_dim, y, y_dim)
    return mask


def _result_bit(a: int, a_dim: int, b: int, b_dim: int) -> int:
    if a_dim == b_dim:
        return promote_types(a, b)
    (strong, weak) = (a, b) if a_dim > b_dim else (b, a)
    if category(weak) > category(strong):
        if category(weak) == 3 and category(strong) == 2:
            return promote_types(_COMPLEX_OF[strong], BITS["complex32"])
        return promote_types(weak, strong)
    return strong


class Ambient(NamedTuple):
    """Autocast's state in one scenario: the low dtype's bit, 0 when off, -1 where the code does not tell."""

    low: int = 0

    @property
    def on(self) -> bool:
        return self.low > 0

    @property
    def unknown(self) -> bool:
        return self.low < 0


OFF = Ambient(0)
UNCERTAIN = Ambient(-1)
Autocast = tuple[Ambient, ...]


_derived: dict[tuple[str, Lane, Lane], Symbol] = {}


def forget_derived() -> None:
    """Drop the symbols of joins and promotions; called between files, so that they do not pile up."""
    _derived.clear()


def _derive(how: str, a: Lane, b: Lane) -> Symbol:
    """The symbol of a dtype that two others decide together: the same two decide the same way.

    That is not strictly so for joins (two branches may go different ways), but a join of the same two dtypes nearly
    always follows the same condition, and taking them for equal can only silence a finding.
    """
    return _derived.setdefault((how, a, b), Symbol(f"{how} of two"))


def join_lanes(a: Lane, b: Lane) -> Lane:
    """What holds on both of two paths."""
    if a == b:
        return a
    mask, assumed = a.mask | b.mask, a.assumed or b.assumed
    symbol = a.symbol if a.symbol is b.symbol else None
    if symbol is None and mask & (mask - 1):
        symbol = _derive("join", a, b)
    unseen = a.open or b.open
    forced = a.certain | b.certain if assumed else UNKNOWN_MASK
    return Lane(mask, symbol, assumed, unseen, forced, min(a.wide, b.wide) if unseen else Bound.NONE)


def equal_lanes(a: Lane, b: Lane) -> Lane:
    """What is known of two dtypes that were found equal: one symbol stands for both from there on."""
    assumed = a.assumed or b.assumed
    if not a.known or not b.known:
        known = a if a.known else b
        return known._replace(symbol=known.symbol or _derive("equality", a, b), assumed=assumed)
    mask = a.mask & b.mask or b.mask
    if mask & (mask - 1) == 0:
        return Lane(mask, None, a.assumed and b.assumed)
    return Lane(mask, b.symbol or a.symbol or _derive("equality", a, b), assumed)


def join(a: Dtypes, b: Dtypes) -> Dtypes:
    """:func:`join_lanes` in every scenario."""
    if a is b or a == b:
        return a
    return tuple(map(join_lanes, a, b))


def select(live: int, a: Dtypes, b: Dtypes) -> Dtypes:
    """``a`` in the scenarios whose bit is set in ``live``, else ``b``."""
    return tuple(x if live >> i & 1 else y for i, (x, y) in enumerate(zip(a, b, strict=True)))


def each(function: Callable[[Lane], Lane], dtypes: Dtypes) -> Dtypes:
    return tuple(map(function, dtypes))


def bounded_by(dtypes: Dtypes, bound: Bound) -> Dtypes:
    """The same where an operand may be no tensor, but an object that decides what comes out."""
    return tuple(lane._replace(bounded=min(lane.bounded, bound)) if lane.bounded else lane for lane in dtypes)


def promote_lanes(a: Lane, a_dim: int | None, b: Lane, b_dim: int | None) -> Lane:
    """The result of arithmetic between two tensors in one scenario.

    Unknown where only the number of dimensions decides and is not known. Stays symbolic where one operand cannot change
    the other's dtype, and is no longer assumed where every dtype that the caller could have passed gives the same
    result: ``q * cos`` with a float32 ``cos`` is float32.
    """
    if a == b and a.symbol is not None and a_dim == b_dim and (a.assumed or a.mask & LOW != LOW):
        return a
    mask = result_type(a.mask, a_dim, b.mask, b_dim)
    bounded = max(
        a.wide if a_dim == 1 or b_dim == 0 else Bound.NONE,
        b.wide if b_dim == 1 or a_dim == 0 else Bound.NONE,
    )
    if not mask:
        return BOUNDED_LANE._replace(bounded=bounded)
    unsure = (a_dim is None or b_dim is None) and mask != result_type(a.mask, a_dim or 1, b.mask, b_dim or 1)
    if unsure:
        return UNKNOWN_LANE
    if a.open or b.open:
        return Lane(mask, _derive("promotion", a, b), a.assumed or b.assumed, True, bounded=bounded)
    assumed = False
    if a.assumed or b.assumed:
        widest = result_type(_caller_range(a), a_dim, _caller_range(b), b_dim)
        if widest & (widest - 1) == 0:
            return Lane(widest)
        assumed = True
    for kept, other in ((a, b), (b, a)):
        if kept.symbol is not None and kept.mask == mask and not other.mask & ~(BOOL | INTEGERS):
            return kept
    return Lane(mask, _derive("promotion", a, b) if mask & (mask - 1) else None, assumed)


def _caller_range(lane: Lane) -> int:
    return lane.mask | AUTOCASTABLE if lane.assumed else lane.mask
