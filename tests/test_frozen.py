"""Frozen data made with one compiled function behaves as that of the standard library."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import field, fields, replace
from operator import lt
from typing import Any

import pytest

from amplint import frozen


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Usual:
    """Data."""

    a: int
    b: tuple[int, ...] = ()
    c: list[int] = field(default_factory=list, compare=False, repr=False)


@frozen.dataclass(frozen=True, order=True, slots=True)
class Quick:
    """Data."""

    a: int
    b: tuple[int, ...] = ()
    c: list[int] = field(default_factory=list, compare=False, repr=False)


@frozen.dataclass(frozen=True)
class Base:
    a: int

    def __repr__(self) -> str:
        return "own"


@frozen.dataclass(frozen=True)
class Derived(Base):
    b: int = 2


@frozen.dataclass(frozen=True, eq=False)
class Object:
    a: int


ARGUMENTS: list[tuple[Any, ...]] = [(1,), (1, (2,)), (1, (2,), [3]), (1, (2,), [4]), (2,)]


def answers(cls: Any) -> list[Any]:
    made = [cls(*arguments) for arguments in ARGUMENTS]
    compared = [(a == b, a < b, a >= b, hash(a) == hash(b)) for a in made for b in made]
    shown = [repr(one).replace(cls.__name__, "X") for one in made]
    return [compared, shown, [one.c for one in made], [f.name for f in fields(cls)], len(set(made))]


def test_it_compares_and_shows_itself_as_usual() -> None:
    assert answers(Quick) == answers(Usual)
    assert Quick(1) != Usual(1)
    with pytest.raises(TypeError):
        lt(Quick(1), Usual(1))


def test_it_is_replaced_pickled_and_derived_from() -> None:
    assert replace(Quick(1, (2,)), a=3) == Quick(3, (2,))
    assert pickle.loads(pickle.dumps(Quick(1, (2,), [3]))).c == [3]
    assert not hasattr(Quick(1), "__dict__")
    assert repr(Base(1)) == "own"
    assert (Derived(1) == Derived(1, 2), Derived(1) == Base(1), repr(Derived(1))) == (True, False, "Derived(a=1, b=2)")
    assert Object(1) != Object(1)
    assert len({Object(1), Object(1)}) == 2
