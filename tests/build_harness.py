"""What the tests of building share: a recipe for a class, and the class built and run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from amplint.verify.build import Built, Deadline, Recipe, find_recipe

if TYPE_CHECKING:
    import types


def recipe_of(
    target: type | None, *, namespace: types.ModuleType | None = None, seconds: float = 20, **options: Any
) -> Recipe:
    """A recipe for a class, by default in the namespace of the file that defines it."""
    namespace = namespace or sys.modules[target.__module__ if target is not None else __name__]
    return find_recipe(target, namespace=namespace, deadline=Deadline.after(seconds), **options)


def built(target: type, **options: Any) -> Built:
    """The target, built, and run in eval and in train mode."""
    recipe = recipe_of(target, **options)
    for training in (False, True):
        made = recipe.make()
        if isinstance(made.module, nn.Module):
            made.module.train(training)
        with torch.no_grad():
            made.module(*made.args, **made.kwargs)
    return made


class Plain(nn.Module):
    def __init__(self, dim: int, out_features: int = 7):
        super().__init__()
        self.project = nn.Linear(dim, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(x)
