"""Objects that a constructor asks for by what it does with them: modules, named types, settings that are not None."""

from __future__ import annotations

import collections.abc
import functools
import re
import typing
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from amplint.verify.build import names, parts
from amplint.verify.build.frames import MISSING
from amplint.verify.build.signatures import Parameter
from amplint.verify.build.spec import Const, Items, Make, Plan, Repair, Spec, each, realise
from amplint.verify.build.values import candidates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build.frames import Place
    from amplint.verify.build.searches import ArgumentSearch


_PLAIN = (int, float, str, bool, list, tuple, dict, type(None), type)
_LACKS = re.compile(r"(?:'(\w+)' object|type object '(\w+)') has no attribute '(\w+)'")
_NO_MODULE = re.compile(r"is not a Module subclass")
_EXPECTS = re.compile(r"expect|must be|should be|has to be|instance|invalid type|wrong type", re.IGNORECASE)
_TYPES: dict[str, Any] = {
    **{kind.__name__: kind for kind in (str, dict, list, tuple, int, float, bool, torch.Tensor, nn.Module)},
    "string": str,
    "dictionary": dict,
    "integer": int,
    "boolean": bool,
    "tensor": torch.Tensor,
    "callable": collections.abc.Callable,
}
"""What messages call the types that they ask for."""


def objects_asked_for(
    search: ArgumentSearch, plan: Plan, text: str, trail: list[Place], blamed: list[str]
) -> Iterator[Repair]:
    """Plans with an object of the kind that ``text``, the message, or the failing statement asks for."""
    yield from _modules(search, plan, text, blamed)
    yield from _named_types(search, plan, text, blamed)
    yield from _unset_fields(plan, trail)


def _modules(search: ArgumentSearch, plan: Plan, text: str, blamed: list[str]) -> Iterator[Repair]:
    """``'int' object has no attribute 'in_features'``: a layer, or a module of the library, that has the attribute."""
    lacks = _LACKS.search(text)
    if lacks is None and not _NO_MODULE.search(text):
        return
    instance, named, attribute = lacks.groups() if lacks is not None else (None, None, None)
    holders = []
    for name in dict.fromkeys([*blamed, *plan]):
        spec = plan.get(name) or Const(_default(search, name))
        value = _plain(spec)
        if isinstance(value, type):
            fits = value.__name__ == named or lacks is None
        else:
            fits = isinstance(value, _PLAIN) and (lacks is None or type(value).__name__ == instance)
        if fits:
            holders.append(name)
    for rank, name in enumerate(holders[:3]):
        made = [layer for layer, had in _LAYERS.items() if attribute is None or hasattr(had(), attribute)]
        choices: list[Spec] = [Make(label, _LAYERS[label]) for label in made]
        choices += parts.having(search.target, name, attribute)[:2] if attribute is not None and not made else []
        if lacks is None and name in plan and isinstance(_plain(plan[name]), (list, tuple)):
            choices = [Items(list, (choice, choice)) for choice in choices]
        yield from each(plan, name, choices, 0.5 + 0.3 * rank, 0.1)


def _plain(spec: Spec) -> Any:
    """A value of the kind that ``spec`` describes, without making anything."""
    return spec.value if isinstance(spec, Const) else spec.kind() if isinstance(spec, Items) else MISSING


_WIDTH = names.FEATURES
_LAYERS: dict[str, Any] = {
    "nn.Linear(32, 32)": functools.partial(nn.Linear, _WIDTH, _WIDTH),
    "nn.Conv2d(32, 32, 1)": functools.partial(nn.Conv2d, _WIDTH, _WIDTH, 1),
    "nn.Embedding(16, 32)": functools.partial(nn.Embedding, 16, _WIDTH),
    "nn.LayerNorm(32)": functools.partial(nn.LayerNorm, _WIDTH),
}


def _default(search: ArgumentSearch, name: str) -> Any:
    parameter = search.parameters.get(name)
    return parameter.default if parameter is not None else MISSING


def _named_types(search: ArgumentSearch, plan: Plan, text: str, blamed: list[str]) -> Iterator[Repair]:
    """``expected a str``: a value of the type."""
    if not _EXPECTS.search(text):
        return
    wanted = list(dict.fromkeys(_TYPES[word] for word in re.findall(r"\b[A-Za-z]+\b", text) if word in _TYPES))
    for rank, name in enumerate(blamed[:3]):
        spec = plan.get(name) or Const(_default(search, name))
        value = spec.value if isinstance(spec, Const) else MISSING
        for order, kind in enumerate(wanted[:4]):
            if isinstance(value, kind) or name not in search.parameters:
                continue
            asked = search.parameters[name].replace(annotation=kind, default=Parameter.empty)
            yield from each(plan, name, candidates(asked, search.target)[:2], 0.6 + 0.2 * rank + 0.1 * order, 0.1)


def _unset_fields(plan: Plan, trail: list[Place]) -> Iterator[Repair]:
    """``if config.input_dim is None: raise``: the same settings with a value for what the statement names."""
    for place in trail[:3]:
        for name, spec in plan.items():
            if not isinstance(spec, Make):
                continue
            settings = _made(spec)
            for field in sorted(place.names() & set(getattr(settings, "__dict__", ()))):
                if getattr(settings, field) is None and not isinstance(settings, nn.Module):
                    for index, value in enumerate(_for_field(type(settings), field)[:8]):
                        label = f"{spec.label} with {field}={value.key}"
                        made = Make(label, functools.partial(_with_field, spec, field, value))
                        yield 0.5 + 0.1 * index, {**plan, name: made}


def _made(spec: Make) -> Any:
    try:
        return spec.call()
    except Exception:
        return None


def _for_field(owner: type, field: str) -> list[Spec]:
    """Values for a field of a class of settings that are not None."""
    try:
        annotation = typing.get_type_hints(owner).get(field, Parameter.empty)
    except Exception:
        annotation = Parameter.empty
    found = candidates(Parameter(field, Parameter.KEYWORD_ONLY, annotation=annotation), owner)
    return [spec for spec in found if not (isinstance(spec, Const) and spec.value is None)]


def _with_field(spec: Make, field: str, value: Spec) -> Any:
    settings = spec.call()
    object.__setattr__(settings, field, realise(value))
    return settings
