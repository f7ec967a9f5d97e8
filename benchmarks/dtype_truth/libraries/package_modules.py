"""Module classes of any installed package, each built from nothing but the class, as ``amplint verify`` builds one."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.autograd import Function

from amplint.verify.build import CannotBuild, Deadline, find_recipe
from dtype_truth.libraries.model import Model, NotBuilt

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator

SECONDS = 15.0
"""For building one class. A block is smaller than a whole model, and there are many."""


def all_models(package: str) -> list[str]:
    """Every module and autograd Function that a file of the package defines, as ``package.file:Class``.

    ``package`` may be a part, such as ``diffusers.models``. Files that cannot be imported are left out.
    """
    return [f"{file.__name__}:{name}" for file in _files(package) for name in vars(file) if _class(file, name)]


def build(name: str) -> Model:
    """The class with the smallest arguments with which it runs. Raises NotBuilt."""
    path, _, attribute = name.partition(":")
    file = imported(path)
    cls = _class(file, attribute) if file else None
    if file is None or cls is None:
        raise NotBuilt(f"{name!r} cannot be imported as package.file:Class")
    try:
        recipe = find_recipe(cls, namespace=file, deadline=Deadline.after(SECONDS))
    except CannotBuild as error:
        raise NotBuilt(error.reason) from error
    return Model(recipe, cls, recipe.how)


def imported(path: str) -> types.ModuleType | None:
    """The file, or None: importing someone's file may raise anything, and scripts exit."""
    try:
        importlib.import_module(path)
    except (Exception, SystemExit):
        return None
    return sys.modules.get(path)


def _files(package: str) -> Iterator[types.ModuleType]:
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda _: None):
        file = imported(found.name)
        if file is not None:
            yield file


def _class(file: types.ModuleType, name: str) -> type[Any] | None:
    """A class of layers or an autograd Function that the file itself defines."""
    found = vars(file).get(name)
    if not isinstance(found, type) or found.__module__ != file.__name__:
        return None
    return found if issubclass(found, (nn.Module, Function)) else None
