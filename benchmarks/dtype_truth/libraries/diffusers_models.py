"""Models of diffusers by class name, built from nothing but the class, as ``amplint verify`` builds a module."""

from __future__ import annotations

import sys

import diffusers.models
from diffusers.models.modeling_utils import ModelMixin

from amplint.verify.build import CannotBuild, Deadline, find_recipe
from dtype_truth.libraries import Model, NotBuilt

SECONDS = 60.0


def all_models() -> list[str]:
    """Every model class that can be imported."""
    return [name for name in dir(diffusers.models) if _class(name) is not None]


def build(name: str) -> Model:
    """The class with the smallest arguments with which it runs."""
    cls = _class(name)
    if cls is None:
        raise NotBuilt(f"diffusers has no model class {name!r} that can be imported")
    try:
        recipe = find_recipe(cls, namespace=sys.modules[cls.__module__], deadline=Deadline.after(SECONDS))
    except CannotBuild as error:
        raise NotBuilt(error.reason) from error
    return Model(recipe, cls, recipe.how)


def _class(name: str) -> type | None:
    try:
        found = getattr(diffusers.models, name, None)
    except (ImportError, RuntimeError):
        return None
    is_model = isinstance(found, type) and issubclass(found, ModelMixin) and found is not ModelMixin
    return found if is_model else None
