"""What one place does to dtypes in one scenario, as data and in a few words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.source import Location, Span

Names = tuple[str, ...]
"""A dtype: the torch names that are possible."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a note is shown: in which row, and after which others: a row's variables first, then its operations."""

    row: int
    after: tuple[int, ...]

    @classmethod
    def of_variable(cls, start: Location) -> Position:
        """In the order of the source; ``start`` is where the variable is bound."""
        return cls(start.row, (0, start.row, start.column))

    @classmethod
    def of_operation(cls, row: int, span: Span) -> Position:
        """In the order in which they are run: from the inside outwards, from left to right."""
        return cls(row, (1, span.end.row, span.end.column, -span.start.row, -span.start.column))


@dataclass(frozen=True, slots=True)
class Note:
    """What one place does to dtypes.

    ``labels``: the variables that get ``after``, or the operation that gives it. ``before``: its operands' dtypes,
    where they differ from ``after``. ``after`` is None where the inference lost it here. ``autocast``: autocast chose
    it.
    """

    at: Position
    labels: tuple[str, ...]
    after: Names | None
    before: tuple[Names, ...] = ()
    autocast: bool = False

    @property
    def text(self) -> str:
        """``x, y: bfloat16 -> float32 (autocast)``."""
        after = shown(self.after)
        if self.before:
            after = f"{', '.join(map(shown, self.before))} -> {after}"
        return f"{', '.join(self.labels)}: {after}{' (autocast)' if self.autocast else ''}"


def shown(dtype: Names | None) -> str:
    """One dtype; several that are possible with bars between them."""
    return "?" if dtype is None else " | ".join(dtype)


def is_floating(dtype: Names) -> bool:
    """Whether it can be a floating or complex one."""
    return any(name.startswith(("float", "bfloat", "complex")) for name in dtype)


def in_order(notes: Iterable[Note]) -> list[Note]:
    """Sorted by position; neighbours on one row that say the same of several variables, as one."""
    joined: list[Note] = []
    for note in sorted(notes, key=lambda note: note.at):
        last = joined[-1] if joined else None
        if last is not None and last.at.row == note.at.row and replace(note, at=last.at, labels=last.labels) == last:
            joined[-1] = replace(last, labels=tuple(dict.fromkeys((*last.labels, *note.labels))))
        else:
            joined.append(note)
    return joined
