"""Data classes made with one compiled function behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
import re
import subprocess
import sys
from dataclasses import field, fields, replace
from operator import lt
from typing import Any

import pytest
from conftest import ROOT

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


@frozen.dataclass(slots=True)
class Growing:
    a: int
    b: list[int] = field(default_factory=list)
    twice: int = field(init=False)
    seen: int = field(default=0, init=False)
    named: str = field(kw_only=True)

    def __post_init__(self) -> None:
        self.twice = 2 * self.a


class Called(Base):
    def __init__(self, a: int) -> None:
        super().__init__(a + 1)


@frozen.sealed(frozen=True, slots=True, order=True)
class Sealed:
    """Data."""

    a: int
    b: tuple[int, ...] = ()
    c: list[int] = field(default_factory=list, compare=False, repr=False)


ARGUMENTS: list[tuple[Any, ...]] = [(1,), (1, (2,)), (1, (2,), [3]), (1, (2,), [4]), (2,)]


def answers(cls: Any) -> list[Any]:
    made = [cls(*arguments) for arguments in ARGUMENTS]
    compared = [(a == b, a < b, a >= b, hash(a) == hash(b)) for a in made for b in made]
    shown = [repr(one).replace(cls.__name__, "X") for one in made]
    return [compared, shown, [one.c for one in made], [f.name for f in fields(cls)], len(set(made))]


def test_it_compares_and_shows_itself_as_usual() -> None:
    assert answers(Quick) == answers(Usual)
    assert answers(Sealed) == answers(Usual)
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


def test_it_is_made_as_usual() -> None:
    one = Growing(2, named="x")
    assert (one.twice, one.seen, one.b, one.named) == (4, 0, [], "x")
    assert one.b is not Growing(2, named="x").b
    assert one == Growing(2, named="x")
    assert Growing.__hash__ is None
    assert Called(1).a == 2
    with pytest.raises(
        TypeError, match=re.escape("Growing.__init__() missing 1 required keyword-only argument: 'named'")
    ):
        Growing(2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=re.escape("Quick.__init__() missing 1 required positional argument: 'a'")):
        Quick()  # type: ignore[call-arg]


def test_what_is_sealed_does_not_change() -> None:
    one = Sealed(1, (2,), [3])
    for change in (lambda: setattr(one, "a", 2), lambda: setattr(one, "d", 2), lambda: delattr(one, "a")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert (one.a, replace(one, a=3)) == (1, Sealed(3, (2,)))
    for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert (again, again.c) == (one, [3])


LIBCST = """
import copy, dataclasses, pickle, sys
from contextlib import nullcontext
from amplint.frozen import quick_libraries
with quick_libraries() if sys.argv[1] == "quick" else nullcontext():
    import libcst as cst
assert dataclasses.dataclass.__module__ == "dataclasses"
class Renamed(cst.CSTTransformer):
    def leave_Name(self, original_node, updated_node):
        return updated_node.with_changes(value=updated_node.value * 2)
module = cst.parse_module("class A:\\n    def f(self, x: int = 1, *a, **k):\\n        return {x: [x[1:2]]}  # why\\n")
print(module, cst.parse_expression("(a + b) if not c else lambda: (yield)"))
print(module.visit(Renamed()).code, module.deep_clone().deep_equals(module), module == module.deep_clone())
print(pickle.loads(pickle.dumps(module)).code, copy.copy(module).code, len({module, module.deep_clone()}))
changed = (lambda: setattr(module, "body", ()), lambda: delattr(module, "body"))
for wrong in (*changed, lambda: cst.Name(), lambda: cst.Name("")):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error if isinstance(error, (TypeError, cst.CSTValidationError)) else "")
print([(field.name, field.init) for field in dataclasses.fields(cst.Call)], cst.Name.__match_args__)
"""


def test_libraries_get_the_same_classes() -> None:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    usual, quick = (
        subprocess.run(
            [sys.executable, "-c", LIBCST, how],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": path},
        ).stdout
        for how in ("usual", "quick")
    )
    assert quick == usual
    assert "FrozenInstanceError" in quick


def test_two_threads_may_make_the_first_objects() -> None:
    @frozen.dataclass(frozen=True)
    class Shared:
        a: int

    first = Shared.__init__
    made = Shared(1)
    assert Shared.__init__ is not first
    first(made, 2)  # as a thread does that was on its way
    assert made.a == 2
