"""What of a library is run: module classes, autograd Functions, plain functions."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.build import CannotBuild, Deadline, Recipe, find_recipe
from amplint.verify.build.forward import Forward, call_arguments
from amplint.verify.build.signatures import VARIADIC, Parameter, parameters

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator, Sequence

    from mutants.sources import File


@dataclass(frozen=True)
class Target:
    """A class or function of a library; ``path`` is its file, ``rows`` those of its source."""

    name: str
    thing: Any
    path: str
    rows: tuple[int, int]


def library_modules(package: str, left_out: Sequence[str], most: int, seed: int) -> list[types.ModuleType]:
    """Up to ``most`` modules of a package, drawn, as far as they can be imported, without those under some names."""
    top = importlib.import_module(package)
    names = [
        info.name
        for info in pkgutil.walk_packages(getattr(top, "__path__", []), f"{package}.", onerror=lambda _: None)
        if not info.ispkg and not any(f".{part}." in f"{info.name}." for part in ("__main__", *left_out))
    ]
    random.Random(seed).shuffle(names)
    found = [] if hasattr(top, "__path__") else [top]
    for name in names:
        if len(found) == most:
            break
        try:
            found.append(importlib.import_module(name))
        except BaseException:
            continue
    return found


def targets(module: types.ModuleType, file: File) -> Iterator[Target]:
    """The module classes, autograd Functions and plain functions that a file defines at its top."""
    for node in file.tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        thing = getattr(module, node.name, None)
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        is_class = isinstance(thing, type) and issubclass(thing, (torch.nn.Module, torch.autograd.Function))
        if is_class or (inspect.isfunction(thing) and _required(thing)):
            rows = (min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno or 0)
            yield Target(f"{module.__name__}.{node.name}", thing, module.__file__ or "", rows)


def _required(function: Any) -> bool:
    """Whether it takes anything that must be given."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    return any(p.default is Parameter.empty and p.kind not in VARIADIC for p in signature.parameters.values())


class Called(torch.nn.Module):
    """A function as a module without parameters."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def recipe_for(target: Target, seconds: float) -> Recipe:
    """How to build and call it. Raises CannotBuild."""
    deadline = Deadline.after(seconds, slack=8)
    if isinstance(target.thing, type):
        return find_recipe(target.thing, namespace=inspect.getmodule(target.thing), deadline=deadline)  # type: ignore[arg-type]
    signature = parameters(target.thing)
    search = Forward(Called(target.thing), 0, deadline, signature=signature)
    plan = search.find(most_tries=120)
    if plan is None:
        raise CannotBuild(search.reason or "it takes nothing", "")
    function = target.thing
    return Recipe(
        how="called by its signature",
        seed=0,
        parts=lambda: (Called(function), *call_arguments(plan, signature, 0)),
        guessed=True,
    )
