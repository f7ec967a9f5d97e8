"""Recipes for a part from the whole: a class that uses the target is built and run, and the target's call is caught."""

from __future__ import annotations

import ast
import copy
import functools
import sys
import types
import typing
from typing import Any

import torch
from torch import nn

from amplint.verify.build.construct import Constructor
from amplint.verify.build.effort import Deadline, OutOfTime, SizeGuard, TooLarge, within
from amplint.verify.build.forward import Forward, call_arguments
from amplint.verify.build.found import Found
from amplint.verify.build.recipe import Parts, Recipe, seed_everything
from amplint.verify.build.signatures import VARIADIC, constructor, parameters, source_tree
from amplint.verify.tensors import replaced

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.verify.build.spec import Plan

MOST_OWNERS = 5
MOST_INSIDE = 2
INSIDE = "inside "
"""What the label of a class that owns the target begins with."""
MOST_BUILDERS = 2


class _Caught(BaseException):
    """Thrown after the first call of the part that succeeded."""

    def __init__(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.path, self.args_, self.kwargs_ = path, args, kwargs


def from_builder(target: type, seed: int, deadline: Deadline) -> Iterator[Recipe]:
    """Recipes from functions of the target's file whose return annotation is ``target`` or a class that uses it.

    Only functions that need no argument and load no weights are called.
    """
    space = sys.modules.get(target.__module__)
    wanted = [target, *owners(target)]
    builders = [
        (wanted.index(made), thing)
        for thing in list(vars(space).values() if space is not None else ())
        if isinstance(thing, types.FunctionType) and (made := _returned(thing)) in wanted and _callable_alone(thing)
    ]
    for _, builder in sorted(builders, key=lambda pair: pair[0])[:MOST_BUILDERS]:
        try:
            with within(min(20.0, deadline.left())), SizeGuard():
                seed_everything(seed)
                whole = builder()
        except (Exception, OutOfTime, TooLarge):
            continue
        how = f"made by {builder.__name__}()"
        if isinstance(whole, target) and isinstance(whole, nn.Module):
            forward = Forward(whole, seed, deadline)
            plan = forward.find(most_tries=60)
            if plan is not None:
                yield Recipe(how=how, seed=seed, parts=functools.partial(_whole, builder, forward, plan), guessed=True)
        elif isinstance(whole, nn.Module):
            caught = _caught_in(whole, target, seed, deadline)
            if caught is not None:
                yield Recipe(
                    how=f"taken from what {builder.__name__}() makes",
                    seed=seed,
                    parts=functools.partial(_parts, builder, caught),
                    guessed=True,
                )


def _returned(function: types.FunctionType) -> Any:
    """The class that a function says it returns."""
    try:
        return typing.get_type_hints(function).get("return")
    except Exception:
        return None


def _callable_alone(function: types.FunctionType) -> bool:
    found = parameters(function)
    if found.get("pretrained") is not None and found["pretrained"].default is not False:
        return False
    if found.get("weights") is not None and found["weights"].default is not None:
        return False
    return not any(p.default is p.empty and p.kind not in VARIADIC for p in found.values())


def from_owner(target: type, seed: int, deadline: Deadline) -> Iterator[Recipe]:
    """Recipes for ``target`` as a part of the classes that use it, the easiest to construct first."""
    found = owners(target)[:MOST_OWNERS]
    for index, owner in enumerate(found):
        left = deadline.left()
        if left <= 0:
            return
        share = deadline.sooner(left / (len(found) - index)) if index + 1 < len(found) else deadline
        search = Constructor(owner, seed, share)
        for plan, _, whole in search.attempts():
            caught = _caught_in(whole, target, seed, share)
            if caught is not None:
                yield Recipe(
                    how=f"taken from {owner.__name__}, which was made from its signature and layers",
                    seed=seed,
                    parts=functools.partial(_parts, functools.partial(search.make, plan), caught),
                    guessed=True,
                )
                break


def inside_owner(target: type, seed: int, deadline: Deadline) -> tuple[str, Recipe] | None:
    """A label and a recipe for a whole class that uses ``target`` and calls it: the first that can be built and run."""
    found = owners(target)[:MOST_INSIDE]
    for index, owner in enumerate(found):
        left = deadline.left()
        if left <= 0:
            return None
        search = Constructor(owner, seed, deadline.sooner(left / (len(found) - index)))
        for plan, _, whole in search.attempts():
            called: list[nn.Module] = []
            for part in [part for part in whole.modules() if type(part) is target]:
                part.register_forward_hook(functools.partial(_noted, called))
            forward = Forward(whole, seed, search.deadline)
            inputs = forward.find(most_tries=60)
            if inputs is not None and called:
                how = f"{INSIDE}{owner.__name__}"
                return how, Found(search, plan, forward, inputs).recipe(how)
            break
    return None


def _noted(called: list[nn.Module], part: nn.Module, *_: Any) -> None:
    called.append(part)


def owners(target: type) -> list[type]:
    """Module classes that use ``target``, directly or through others, in the files that know it."""
    seen: dict[type, int] = {}
    for space in _spaces(target):
        classes = {
            thing.__name__: thing
            for thing in list(vars(space).values())
            if isinstance(thing, type) and issubclass(thing, nn.Module) and thing.__module__ == space.__name__
        }
        classes.setdefault(target.__name__, target)
        uses = {name: _names(thing) & set(classes) - {name} for name, thing in classes.items()}
        reach, frontier, distance = {target.__name__}, {target.__name__}, 0
        while frontier:
            distance += 1
            frontier = {name for name, used in uses.items() if used & frontier} - reach
            reach |= frontier
            for name in frontier:
                seen.setdefault(classes[name], distance)
    return sorted(seen, key=lambda owner: (_required(owner), seen[owner]))


def _required(owner: type) -> int:
    return sum(p.default is p.empty and p.kind not in VARIADIC for p in constructor(owner).values())


def _spaces(target: type) -> list[types.ModuleType]:
    """The target's module, then the loaded modules of its package that hold it under its name."""
    package = target.__module__.partition(".")[0]
    own = sys.modules.get(target.__module__)
    others = [
        space
        for name, space in sorted(sys.modules.items())
        if name.partition(".")[0] == package
        and isinstance(space, types.ModuleType)
        and vars(space).get(target.__name__) is target
        and space is not own
    ]
    return [space for space in (own, *others[:12]) if space is not None]


def _names(thing: type) -> set[str]:
    tree = source_tree(thing)
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree is not None else set()
    return found | {base.__name__ for base in thing.__mro__[1:-1]}


def _caught_in(whole: nn.Module, target: type, seed: int, deadline: Deadline) -> _Caught | None:
    """The first call of a ``target`` in ``whole`` that succeeds while inputs are searched for the whole."""
    paths = [path for path, part in whole.named_modules() if type(part) is target and path]
    if not paths:
        return None
    given: dict[str, tuple[Any, Any]] = {}
    handles = []
    for path in paths:
        part = whole.get_submodule(path)

        def before(_: nn.Module, args: Any, kwargs: Any, path: str = path) -> None:
            given[path] = (_copied(args), _copied(kwargs))

        def after(_: nn.Module, args: Any, kwargs: Any, output: Any, path: str = path) -> None:
            raise _Caught(path, *given[path])

        handles.append(part.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(part.register_forward_hook(after, with_kwargs=True))
    try:
        Forward(whole, seed, deadline).find(most_tries=60)
    except _Caught as call:
        return call
    except OutOfTime:
        return None
    finally:
        for handle in handles:
            handle.remove()
    return None


_LARGE = 10.0
"""Standard deviation beyond which an activation is not what a trained network hands on."""


def _copied(value: Any) -> Any:
    """``value`` with its tensors cloned, unwatched; other objects deep-copied where that is possible."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return value.detach().clone()
    if type(value) in (list, tuple):
        return type(value)(_copied(item) for item in value)
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def _whole(builder: Callable[[], Any], forward: Forward, plan: Plan) -> Parts:
    return builder(), *call_arguments(plan, forward.parameters, forward.seed)


def _parts(make: Callable[[], Any], call: _Caught) -> Parts:
    whole: nn.Module = make()
    args, kwargs = replaced(_copied((call.args_, call.kwargs_)), _moderate, objects=False)
    return whole.get_submodule(call.path), args, kwargs


def _moderate(tensor: torch.Tensor) -> torch.Tensor:
    """Large floats brought to unit variance: an untrained owner may let activations grow."""
    spread = tensor.std().item() if tensor.is_floating_point() and tensor.numel() > 1 else 0.0
    return tensor / spread if _LARGE < spread < float("inf") else tensor
