"""Recipes that the user wrote: a configured factory, and ``amplint_example`` of the class or of its file."""

from __future__ import annotations

import copy
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.build.recipe import Built, CannotBuild, Parts, Recipe
from amplint.verify.loading import one_line
from amplint.verify.targets import EXAMPLE

if TYPE_CHECKING:
    import types
    from collections.abc import Callable


def from_factory(factory: Callable[[], Any], seed: int) -> Recipe:
    """A recipe from the configuration's factory: a module, ``(module, args)`` or ``(module, args, kwargs)``.

    A factory that gives a module alone is completed with synthesised inputs by the caller.
    """
    return Recipe(how=f"factory {_described(factory)}", seed=seed, parts=Fresh(factory))


def from_class(target: type, seed: int) -> Recipe | None:
    """A recipe from the static method ``amplint_example`` of ``target``.

    An inherited one counts only if what it returns is an instance of ``target``.
    """
    example = getattr(target, EXAMPLE, None)
    if example is None or not callable(example):
        return None
    recipe = Recipe(how=f"{EXAMPLE} of the class", seed=seed, parts=Fresh(example))
    if EXAMPLE in vars(target):
        return recipe
    return recipe if holds(made(recipe).module, target) else None


def from_module(namespace: types.ModuleType, target: Any, seed: int) -> Recipe | None:
    """A recipe from the file's own ``amplint_example``, if what it returns is or contains a ``target``.

    One that raises speaks for no class; for the file (``target`` None) it is given all the same.
    """
    example = getattr(namespace, EXAMPLE, None)
    if example is None or not callable(example):
        return None
    recipe = Recipe(how=f"{EXAMPLE} of the file", seed=seed, parts=Fresh(example))
    if target is None:
        return recipe
    try:
        return recipe if holds(made(recipe).module, target) else None
    except CannotBuild:
        return None


def builds(recipe: Recipe, target: type) -> bool:
    """True if what the recipe gives is an instance of ``target`` itself, a method of one, or its ``apply``."""
    module = made(recipe).module
    owner = getattr(module, "__self__", None)
    return type(module) is target or type(owner) is target or owner is target


class Fresh:
    """What an example returns. A module that it returns every time again, such as a global, is copied as it was first:
    a run casts it, trains it and fills its caches."""

    def __init__(self, example: Callable[[], Any]) -> None:
        self._example = example
        self._first: tuple[Any, Parts] | None = None
        self._called = False

    def __call__(self) -> Parts:
        made = unpacked(self._example())
        module = made[0]
        if not self._called:
            self._called = True
            if isinstance(module, torch.nn.Module):
                with suppress(Exception):  # not everything can be copied
                    self._first = (module, copy.deepcopy(made))
        elif self._first is not None:
            if module is self._first[0]:
                return copy.deepcopy(self._first[1])
            self._first = None
        return made


def holds(module: Any, target: Any) -> bool:
    """True if ``module`` is an instance of ``target``, contains one, or is its ``apply``; or ``target``, a function."""
    if not isinstance(target, type):
        return module is target
    if isinstance(module, target) or module == getattr(target, "apply", None):
        return True
    return isinstance(module, torch.nn.Module) and any(isinstance(part, target) for part in module.modules())


def unpacked(result: Any) -> Parts:
    """``result`` of an example or factory as module, args, kwargs.

    Raises CannotBuild where it is none of the three accepted forms.
    """
    if not isinstance(result, tuple):
        result = (result,)
    module, args, kwargs = (*result, *((), {})[len(result) - 1 :])[:3]
    if len(result) > 3 or not callable(module) or not isinstance(kwargs, dict):
        raise CannotBuild(
            f"the example returned {_shape_of(result)}", "Return (module, args, kwargs): a module, a tuple, a dict."
        )
    if isinstance(args, torch.Tensor) or not isinstance(args, (tuple, list)):
        args = (args,)
    return module, tuple(args), kwargs


def made(recipe: Recipe) -> Built:
    """What a recipe of the user's gives. Raises CannotBuild for whatever it raises."""
    try:
        return recipe.make()
    except CannotBuild:
        raise
    except Exception as error:
        raise CannotBuild(f"{recipe.how} raised {one_line(error)}", f"Correct {recipe.how}: it must run.") from error


def _described(factory: Callable[[], Any]) -> str:
    name = getattr(factory, "__qualname__", type(factory).__name__)
    code = getattr(inspect.unwrap(factory), "__code__", None)
    return f"{code.co_filename}::{name}" if code is not None else name


def _shape_of(result: tuple[Any, ...]) -> str:
    return "(" + ", ".join(type(item).__name__ for item in result) + ")"
