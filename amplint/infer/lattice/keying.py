"""Keys of values that hold others: what tells them apart, as far as that can be looked into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

_MAX_KEYED = 300
"""Values inside another that its key tells apart; one that holds more is like itself only."""
_MAX_LEVELS = 50
"""Values inside each other that a key looks through."""


class Keyed(Protocol):
    """What has a key."""

    @property
    def key(self) -> Hashable: ...


class _Keying:
    """How far the key that is being made has looked."""

    __slots__ = ("level", "seen")

    def __init__(self) -> None:
        self.level = 0
        self.seen = 0


_keying = _Keying()
_told_apart: dict[int, object] = {}


def identity(thing: object) -> int:
    """What tells an object apart from all others of an analysis: its ``id``, which no other gets while it is kept."""
    number = id(thing)
    _told_apart[number] = thing
    return number


def forget_identities() -> None:
    """Let go of what was told apart: no key that holds such a number is compared any more."""
    _told_apart.clear()


def keys_of(holder: object, held: Iterable[Keyed], count: int) -> Hashable:
    """The keys of the ``count`` values that another holds; its identity where there are too many to tell apart.

    Values that hold each other twice over (``a = (a, a)``) are as large as no program could be, and dicts may hold
    themselves.
    """
    keying, level = _keying, _keying.level
    seen = keying.seen = count + (keying.seen if level else 0)
    if seen > _MAX_KEYED or level >= _MAX_LEVELS:
        return identity(holder)
    keying.level = level + 1
    try:
        return tuple([value.key for value in held])
    finally:
        keying.level = level
