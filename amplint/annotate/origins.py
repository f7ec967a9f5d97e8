"""Why an expression has its dtype in one scenario: the place that decided it, and where its operands' came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import names_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.annotate.rows import Row
    from amplint.infer.lattice.values import Origin
    from amplint.source import Span

MAX_SOURCES = 6
"""Places named for one dtype, where paths or operands brought together many."""
MAX_STEPS = 4_000
"""Places kept for one file and scenario; behind the last of them nothing is said."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something decided a dtype, and what."""

    filename: str
    span: Span
    what: str


@dataclass(frozen=True, slots=True)
class Step:
    """A place in one scenario: the dtypes it gave, whether autocast chose them, and the numbers of the steps before."""

    place: Place
    dtypes: tuple[str, ...]
    autocast: bool
    before: tuple[int, ...]


def decider(row: Row, lane: int) -> Origin | None:
    """The place that decided a row's dtype in one scenario; None where the dtype or the place is not known.

    Where paths with different dtypes meet, that of the first.
    """
    return None if row.dtypes[lane] is None or row.origin is None else next(_deciders(row.origin, lane), None)


class Steps:
    """The places behind the rows of one file in one scenario, each once; a step's number is its index in ``all``."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._numbers: dict[tuple[Place, tuple[str, ...], bool], int] = {}
        self._origins: list[Origin] = []
        self._before: dict[int, tuple[int, ...]] = {}

    def of(self, row: Row) -> tuple[int, ...]:
        """The steps that decided a row's dtype: several where paths with different dtypes meet."""
        if row.dtypes[self._lane] is None or row.origin is None:
            return ()
        found = self._number_all(_deciders(row.origin, self._lane))
        pending = list(found)
        while pending:
            number = pending.pop()
            if number not in self._before:
                parents = self._origins[number].parents
                self._before[number] = self._number_all(d for p in parents for d in _deciders(p, self._lane))
                pending.extend(self._before[number])
        return found

    def _number_all(self, origins: Iterator[Origin]) -> tuple[int, ...]:
        numbers: dict[int, None] = {}
        for origin in origins:
            dtypes, autocast = tuple(names_of(origin.dtypes[self._lane].mask)), self._autocast(origin)
            key = Place(origin.filename, origin.span, origin.what), dtypes, autocast
            number = self._numbers.get(key)
            if number is None:
                if len(self._origins) == MAX_STEPS:
                    continue
                number = self._numbers[key] = len(self._origins)
                self._origins.append(origin)
            numbers[number] = None
            if len(numbers) == MAX_SOURCES:
                break
        return tuple(numbers)

    def _autocast(self, origin: Origin) -> bool:
        return bool(origin.autocast >> self._lane & 1)

    @property
    def all(self) -> list[Step]:
        return [
            Step(place, dtypes, autocast, tuple(n for n in self._before.get(number, ()) if n != number))
            for (place, dtypes, autocast), number in self._numbers.items()
        ]


def _deciders(origin: Origin, lane: int) -> Iterator[Origin]:
    """The places that decided a dtype, behind everything that only passed it on or brought several paths together.

    An operation for which autocast chooses passes nothing on, even where an operand has the same dtype already.
    """
    pending, seen = [origin], set[int]()
    while pending:
        current = pending.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        wanted = current.dtypes[lane]
        same = next((parent for parent in current.parents if parent.dtypes[lane] == wanted), None)
        if current.autocast >> lane & 1:
            yield current
        elif same is not None:
            pending.insert(0, same)
        elif current.what or not current.parents:
            yield current
        else:
            pending.extend(parent for parent in current.parents if parent.dtypes[lane].mask & wanted.mask)
