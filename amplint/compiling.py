"""What modules say differently so that mypyc can compile them, and that they run alike where it does not."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

__all__ = ["kept", "ordinary"]

Class = TypeVar("Class", bound=type)
Told = TypeVar("Told")


class kept(cached_property[Told]):  # a decorator, like the one that it is
    """``functools.cached_property`` by another name: mypyc compiles that one to a property that keeps nothing."""


def ordinary(cls: Class) -> Class:
    """Nothing is changed of the class: what any decorator says to mypyc is that it is to be no extension type.

    Such a type has no ``__dict__``, in which ``kept`` keeps what it computed.
    """
    return cls
