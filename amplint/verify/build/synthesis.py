"""A recipe from nothing but the class: constructor arguments and inputs, searched together."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import torch
from torch import nn

from amplint.frozen import dataclass
from amplint.verify.build import constructor_repair
from amplint.verify.build.construct import Constructor
from amplint.verify.build.effort import OutOfTime, TooLarge
from amplint.verify.build.forward import Forward, needs_gradients
from amplint.verify.build.found import Found
from amplint.verify.build.owners import from_builder, from_owner
from amplint.verify.build.recipe import Recipe
from amplint.verify.build.spread import spread

if TYPE_CHECKING:
    from amplint.verify.build.effort import Deadline
    from amplint.verify.build.spec import Plan

MOST_MODULES = 16
"""Constructed variants of a class that are searched for inputs."""
SLOW = 2.0
"""Seconds of one forward beyond which a smaller module is looked for."""
HOW = "made from its signature and layers"


@dataclass(frozen=True)
class Failed:
    """Why no recipe was found: one line."""

    reason: str


def synthesise(target: type[nn.Module], seed: int, deadline: Deadline) -> Recipe | Failed:
    """A recipe for the module class ``target`` that runs in eval and in train mode.

    Half of the time goes to the class alone, the rest to classes that use it.
    """
    if target.forward is nn.Module.forward:
        return Failed("it has no forward of its own")
    found = _alone(target, seed, deadline.sooner(deadline.left() / 2))
    if isinstance(found, Recipe):
        return found
    for recipe in itertools.chain(from_builder(target, seed, deadline), from_owner(target, seed, deadline)):
        if confirmed(recipe):
            return recipe
    return found


def _alone(target: type, seed: int, deadline: Deadline) -> Recipe | Failed:
    search = Constructor(target, seed, deadline)
    reason = ""
    furthest = -1
    for tried, (plan, cost, module) in enumerate(search.attempts()):
        forward = Forward(module, seed, deadline, fresh=functools.partial(search.bounded, plan))
        inputs = forward.find(most_tries=160 if tried == 0 else 60)
        if inputs is not None:
            found = Found(search, plan, forward, inputs)
            if forward.seconds > SLOW:
                found = _faster(search, plan, forward.seconds) or found
            for one in (spread(found), found):
                if confirmed(one.recipe(HOW)):
                    return one.recipe(HOW)
            reason = "a second instance of it does not run"
        elif forward.progress > furthest or not reason:
            furthest, reason = forward.progress, forward.reason
        if inputs is None:
            for extra, repaired in constructor_repair.after_forward(search, plan, forward.error, forward.reason):
                search.push(repaired, cost + extra)
        if tried + 1 == MOST_MODULES:
            break
    return Failed(reason or search.reason or "no other arguments are left to try")


def _faster(search: Constructor, plan: Plan, seconds: float) -> Found | None:
    """A smaller module whose forward takes less than half of ``seconds``."""
    for smaller in search.smaller(plan):
        try:
            module = search.bounded(smaller)
        except (Exception, OutOfTime, TooLarge):
            continue
        forward = Forward(module, search.seed, search.deadline, fresh=functools.partial(search.bounded, smaller))
        inputs = forward.find(most_tries=30)
        if inputs is not None and forward.seconds < seconds / 2:
            return Found(search, smaller, forward, inputs)
    return None


def inputs_for(module: nn.Module, seed: int, deadline: Deadline) -> tuple[Forward, Plan | None]:
    """Inputs for a module that exists."""
    forward = Forward(module, seed, deadline)
    return forward, forward.find(most_tries=160)


def confirmed(recipe: Recipe) -> bool:
    """True if a fresh build runs unwatched, in eval mode and in train mode."""
    return all(_runs(recipe, training, gradients=False) for training in (False, True))


def _runs(recipe: Recipe, training: bool, *, gradients: bool) -> bool:
    try:
        built = recipe.make()
        if isinstance(built.module, nn.Module):
            built.module.train(training)
        with torch.set_grad_enabled(gradients):
            built.module(*built.args, **built.kwargs)
    except Exception as error:
        return not gradients and needs_gradients(error) and _runs(recipe, training, gradients=True)
    return True
