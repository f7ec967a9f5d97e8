"""What modules use so that they do the same whether mypyc compiled them or not."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

__all__ = ["kept", "ordinary"]

Class = TypeVar("Class", bound=type)
Told = TypeVar("Told")


class kept(cached_property[Told]):  # a decorator, like the one that it is
    """``functools.cached_property`` by another name: mypyc compiles that one to a property that keeps nothing."""


def ordinary(cls: Class) -> Class:
    """The class, unchanged: any decorator keeps mypyc from making an extension type of it.

    Objects of such a type have no ``__dict__``, in which ``kept`` keeps what it computed, and it inherits from no class
    of Python's own that has one.
    """
    return cls
