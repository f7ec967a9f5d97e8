"""Configuration objects: dataclasses, classes with defaults, and a stand-in where nothing names the class."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

from torch import nn

from amplint.verify.build import names
from amplint.verify.build.parts import part
from amplint.verify.build.signatures import VARIADIC, Parameter, namespace_of, parameters
from amplint.verify.build.spec import Make, Spec, realise

_KEPT = re.compile(r"head_(dim|size)|dim_head|key_dim|len|max|pos")
"""Sizes that are not widths, and those of one head: with fewer heads the width shrinks enough."""
_ENDINGS = ("config", "cfg", "args", "options")
Choose = Callable[[Parameter, type, int], list[Spec]]
"""What to try for a parameter of a class, at some depth of configurations inside each other; at least one."""


class AnyConfig(dict[str, Any]):
    """A configuration of an unknown class: any key and any attribute, with a value that its name suggests.

    ``path`` are the keys by which it was reached from the whole one.
    """

    path: tuple[str, ...]

    def __init__(self, *, path: tuple[str, ...] = ()) -> None:
        super().__init__()
        object.__setattr__(self, "path", path)

    def __missing__(self, name: str) -> Any:
        values = names.values_for(name)
        self[name] = values[0] if values else names.FEATURES
        return self[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dict: the default where the key was not set."""
        return dict.get(self, name, default)


def objects(annotation: type, depth: int, choose: Choose) -> list[Spec]:
    """Instances of a class that an annotation names: a module, a dataclass, a configuration, anything constructible.

    ``choose`` gives the values of its own parameters.
    """
    if annotation.__module__ == "builtins" or getattr(annotation, "__abstractmethods__", None):
        return []
    if issubclass(annotation, nn.Module):
        return [part(annotation)]
    plan = _arguments(annotation, depth, choose)
    if plan is None:
        return []
    label = f"{annotation.__module__}.{annotation.__qualname__}"
    plain = Make(f"{label}()", lambda: annotation(**{name: realise(spec) for name, spec in plan.items()}))
    if not shrinkable(annotation):
        return [plain]
    smaller = [Make(f"{label}() / {by}", functools.partial(_made_smaller, plain, by)) for by in (1, 4, 16)]
    return [plain, *smaller]


def _made_smaller(settings: Make, by: int) -> Any:
    return shrunk(settings.call(), by)


def unnamed(owner: type, depth: int, choose: Choose) -> list[Spec]:
    """Configurations for a parameter of ``owner`` that has no annotation; ``choose`` gives the values of their fields.

    The owner's ``config_class``; the configuration classes that its file knows, those with the longest common start of
    name first; AnyConfig.
    """
    known: list[type] = []
    named = getattr(owner, "config_class", None)
    if isinstance(named, type):
        known.append(named)
    space = namespace_of(owner)
    beside = [
        thing
        for thing in (vars(space).values() if space is not None else ())
        if isinstance(thing, type) and thing.__name__.lower().endswith(_ENDINGS)
    ]
    for home in dict.fromkeys(namespace_of(thing) for thing in [*known, *beside]):
        beside += [
            thing
            for thing in list(vars(home).values() if home is not None else ())
            if isinstance(thing, type) and thing.__name__.lower().endswith(_ENDINGS) and namespace_of(thing) is home
        ]
    beside.sort(key=lambda thing: -_shared_start(thing.__name__, owner.__name__))
    found: list[Spec] = []
    for thing in dict.fromkeys([*known, *dict.fromkeys(beside)][:4]):
        found += objects(thing, depth + 1, choose) if depth < 2 and thing is not owner else []
    return [*found, Make("AnyConfig()", AnyConfig)]


def _shared_start(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def shrinkable(annotation: type) -> bool:
    """True for what looks like a bag of settings."""
    return dataclasses.is_dataclass(annotation) or annotation.__name__.lower().endswith(
        ("config", "cfg", "args", "options")
    )


def shrunk(settings: Any, by: int) -> Any:
    """``settings`` with depths of 1 to 2, a vocabulary of at most 256, and widths of 128 and more divided ``by``."""
    for name, value in list(vars(settings).items()):
        smaller = smaller_value(name, value, by)
        if smaller is not value:
            object.__setattr__(settings, name, smaller)
    return settings


def smaller_value(name: str, value: Any, by: int) -> Any:
    """A smaller value for a setting: few layers and words, widths divided ``by`` to multiples of 32."""
    role = names.role_of(name)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple) and all(type(item) is int for item in value):
        return type(value)(smaller_value(name, item, by) for item in value) if value else value
    if type(value) is not int or value < 2 or name.endswith(("_id", "_index", "_idx")):
        return value
    if role == names.DEPTH:
        return min(value, 2 if by < 4 else 1)
    if role == names.VOCABULARY:
        return min(value, 256)
    if role == names.COUNT and by > 1:
        return max(value // by, 2) if value > 4 else value
    if by > 1 and value >= 128 and role != names.SIZE and not _KEPT.search(name):
        return max(value // by // names.FEATURES, 1) * names.FEATURES
    return value


def _arguments(annotation: type, depth: int, choose: Choose) -> dict[str, Spec] | None:
    settings = parameters(annotation)
    plan: dict[str, Spec] = {}
    for name, parameter in settings.items():
        if parameter.default is Parameter.empty and parameter.kind not in VARIADIC:
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                return None
            plan[name] = choose(parameter, annotation, depth)[0]
    return plan
