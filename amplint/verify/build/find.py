"""Where a recipe comes from: what the user wrote first, what the class itself tells last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.build import advice, doctests, examples
from amplint.verify.build.forward import call_arguments
from amplint.verify.build.functions import synthesise_call, synthesise_function
from amplint.verify.build.recipe import CannotBuild, Recipe
from amplint.verify.build.synthesis import Failed, inputs_for, synthesise

if TYPE_CHECKING:
    import types
    from collections.abc import Callable

    from amplint.verify.build.effort import Deadline


def find_recipe(
    target: Any,
    *,
    namespace: types.ModuleType,
    factory: Callable[[], Any] | None = None,
    seed: int = 0,
    deadline: Deadline,
) -> Recipe:
    """How to build ``target``, an ``nn.Module`` or ``autograd.Function`` class, or a function, of ``namespace``.

    In order: ``factory``, the class's ``amplint_example``, the file's if it builds this class, the examples in its
    docstring, synthesis, the file's example if what it builds contains this class.
    None as target asks for the file's ``amplint_example``. ``deadline`` bounds the search.

    Raises CannotBuild.
    """
    if factory is not None:
        return _completed(examples.from_factory(factory, seed), seed, deadline)
    if target is None:
        recipe = examples.from_module(namespace, None, seed)
        if recipe is None:
            raise CannotBuild("the file has no amplint_example", advice.for_file())
        return recipe
    whole = examples.from_module(namespace, target, seed)
    if not isinstance(target, type):
        called = whole or synthesise_call(target, seed, deadline)
        if isinstance(called, Failed):
            raise CannotBuild(called.reason, advice.for_function(target))
        return called
    for recipe in (examples.from_class(target, seed), whole if whole and examples.builds(whole, target) else None):
        if recipe is not None:
            return recipe
    if issubclass(target, torch.autograd.Function):
        found = synthesise_function(target, seed, deadline)
    elif issubclass(target, torch.nn.Module):
        recipe = doctests.from_docstring(target, namespace, seed, deadline)
        found = recipe if recipe is not None else synthesise(target, seed, deadline)
    else:
        found = Failed(f"{target.__name__} is neither an nn.Module nor an autograd.Function")
    if isinstance(found, Failed):
        if whole is not None:
            return whole
        raise CannotBuild(found.reason, advice.for_class(target))
    return found


def _completed(recipe: Recipe, seed: int, deadline: Deadline) -> Recipe:
    """A factory's recipe, with synthesised inputs where it gives a module alone."""
    built = examples.made(recipe)
    if built.args or built.kwargs or not isinstance(built.module, torch.nn.Module):
        return recipe
    forward, plan = inputs_for(built.module, seed, deadline)
    if plan is None:
        raise CannotBuild(
            f"no inputs found for {recipe.how}: {forward.reason}", "Return (module, args, kwargs) from the factory."
        )
    return Recipe(
        how=f"{recipe.how}, inputs from its signature and layers",
        seed=seed,
        parts=lambda: (recipe.parts()[0], *call_arguments(plan, forward.parameters, seed)),
        guessed=True,
    )
