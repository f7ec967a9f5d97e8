"""Values to try for one constructor parameter, from its annotation, its name, and what its class compares it with."""

from __future__ import annotations

import collections.abc
import enum
import functools
import re
import types
import typing
from typing import Any

import torch
from torch import nn

from amplint.verify.build import names
from amplint.verify.build.configs import AnyConfig, objects, unnamed
from amplint.verify.build.signatures import Parameter, compared_constants, namespace_of
from amplint.verify.build.spec import Const, Items, Make, Spec

_NUMBERS = (int, float)
_SEQUENCES = (
    *(list, tuple, set, frozenset),
    *(collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection),
)


def candidates(parameter: Parameter, owner: type, depth: int = 0) -> list[Spec]:
    """Specs for ``parameter`` of ``owner``, best first, without repetition; at least one."""
    name, annotation = parameter.name, parameter.annotation
    compared = compared_constants(owner, name)
    limits = [value for value in compared if type(value) in _NUMBERS and value <= 1]
    found: list[Spec] = [Const(value) for value in compared if not any(value is limit for limit in limits)]
    found += _from_annotation(annotation, name, owner, depth)
    if not found or annotation is Parameter.empty or annotation is typing.Any:
        found += _from_name(name, owner, depth)
    found += [Const(value) for value in limits]
    if parameter.default is not Parameter.empty and parameter.default is not None:
        found.insert(0, Const(parameter.default))
    return distinct(found) or [Const(None)]


def layer_choices(name: str, owner: type) -> list[Spec]:
    """Layer classes, then layers, for a parameter of ``owner`` that turned out to be called."""
    return [*_classes(nn.Module, name, owner), *_modules(name, owner, nn.Module)]


def distinct(specs: list[Spec]) -> list[Spec]:
    """``specs`` without repetitions, in order."""
    return list({spec.key: spec for spec in specs}.values())


def _from_annotation(annotation: Any, name: str, owner: type, depth: int) -> list[Spec]:
    if annotation is Parameter.empty or annotation is typing.Any:
        return []
    if isinstance(annotation, str):
        return _from_text(annotation, name, owner, depth)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated or isinstance(annotation, typing.TypeVar):
        inner = arguments[0] if arguments else annotation.__bound__
        return _from_annotation(inner, name, owner, depth) if inner is not None else []
    if origin is typing.Literal:
        return [Const(value) for value in arguments]
    if origin in (typing.Union, types.UnionType):
        parts = [_from_annotation(part, name, owner, depth) for part in arguments if part is not type(None)]
        merged = [spec for group in parts for spec in group]
        return [*merged, Const(None)] if type(None) in arguments else merged
    if origin in _SEQUENCES or annotation in _SEQUENCES:
        return _sequences(origin or annotation, arguments, name, owner, depth)
    if origin in (dict, collections.abc.Mapping) or annotation in (dict, collections.abc.Mapping):
        return [Const({}), Make("AnyConfig()", AnyConfig)]
    if origin is type or annotation is type:
        return _classes(arguments[0] if arguments else nn.Module, name, owner)
    if origin is collections.abc.Callable or annotation in (typing.Callable, collections.abc.Callable):
        return _from_callable(arguments, name, owner)
    return _from_class(annotation, name, owner, depth) if isinstance(annotation, type) else []


def _from_class(annotation: type, name: str, owner: type, depth: int) -> list[Spec]:
    if issubclass(annotation, enum.Enum):
        return [Const(member) for member in annotation]
    if annotation is bool:
        return [Const(value) for value in _of_type(name, (bool,)) or [False, True]]
    if annotation is int:
        return [Const(value) for value in _of_type(name, (int,)) or _of_type("", (int,))]
    if annotation is float:
        return [Const(value) for value in [float(v) for v in _of_type(name, _NUMBERS)] or [1.0, 0.1, 0.0]]
    if annotation is str:
        return [Const(word) for word in names.words_for(name)]
    if annotation is torch.dtype:
        return [Const(torch.float32)]
    if annotation is torch.device:
        return [Const("cpu")]
    if annotation is torch.Size:
        return [Const((names.FEATURES,))]
    if issubclass(annotation, nn.Parameter):
        return [Make("Parameter", lambda: nn.Parameter(torch.randn(names.FEATURES, names.FEATURES)))]
    if issubclass(annotation, torch.Tensor):
        return [
            Make("tensor of 32", lambda: torch.randn(names.FEATURES)),
            Make("tensor of 32x32", lambda: torch.randn(names.FEATURES, names.FEATURES)),
        ]
    if annotation is nn.Module or annotation is nn.ModuleList or annotation is nn.Sequential:
        return _modules(name, owner, annotation)
    if depth < 3:
        return objects(annotation, depth + 1, candidates)
    return []


def _from_text(text: str, name: str, owner: type, depth: int) -> list[Spec]:
    """From an annotation that could not be resolved."""
    if re.search(r"Callable|Type\[|type\[|LayerType", text):
        return _classes(nn.Module, name, owner)
    if re.search(r"Module\b", text):
        return _modules(name, owner, nn.Module)
    if re.search(r"(List|Sequence|Tuple|list|tuple)\[", text):
        return _sequences(tuple if "uple" in text else list, (int,), name, owner, depth)
    return []


def _of_type(name: str, kinds: tuple[type, ...]) -> list[Any]:
    """Values for ``name`` that have exactly one of the types; numbers of any name where it says nothing."""
    found = [value for value in names.values_for(name) if type(value) in kinds]
    if found or (name and kinds == (bool,)):
        return found
    return [value for value in names.WIDTHS if type(value) in kinds] if int in kinds and kinds == (int,) else []


def _sequences(kind: Any, arguments: tuple[Any, ...], name: str, owner: type, depth: int) -> list[Spec]:
    make = tuple if kind is tuple else list
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        columns = [_from_annotation(part, name, owner, depth) or [Const(None)] for part in arguments]
        rows = [Items(tuple, tuple(column[min(i, len(column) - 1)] for column in columns)) for i in range(3)]
        return distinct(list(rows))
    element = arguments[0] if arguments else int
    listed = [make(v) for v in names.values_for(name) if isinstance(v, (list, tuple)) and element in (int, float)]
    inner = _from_annotation(element, name.removesuffix("s"), owner, depth) or [Const(names.FEATURES)]
    rows = [Items(make, (spec,) * count) for count in (4, 2, 1, 3) for spec in inner[:2]]
    return [*(Const(value) for value in listed), *rows]


def _from_callable(arguments: tuple[Any, ...], name: str, owner: type) -> list[Spec]:
    taken = arguments[0] if arguments and isinstance(arguments[0], list) else None
    if taken and taken[0] is torch.Tensor:
        return [Const(nn.functional.gelu), Make("nn.Identity()", nn.Identity)]
    return _classes(nn.Module, name, owner)


def _classes(bound: Any, name: str, owner: type) -> list[Spec]:
    """Classes (or callables that construct) for a parameter that the owner calls to make a layer."""
    wanted = [part for part in (typing.get_args(bound) or (bound,)) if isinstance(part, type)]
    concrete = [part for part in wanted if issubclass(part, nn.Module) and part is not nn.Module]
    word = name.lower()
    if "norm" in word or word == "bn":
        common: list[Any] = [nn.LayerNorm, nn.BatchNorm2d, functools.partial(nn.GroupNorm, 1)]
    elif "act" in word or "nonlin" in word:
        common = [nn.GELU, nn.ReLU, nn.functional.gelu]
    elif "conv" in word:
        common = [nn.Conv2d, nn.Conv1d]
    elif "pool" in word:
        common = [nn.AvgPool2d, nn.MaxPool2d]
    elif "linear" in word or "proj" in word:
        common = [nn.Linear, nn.Conv2d]
    else:
        common = [*_namesakes(word, owner), nn.Identity, nn.LayerNorm, nn.GELU]
    return distinct([Const(part) for part in [*concrete, *common, nn.Identity]])


def _namesakes(word: str, owner: type) -> list[type]:
    """Module classes beside ``owner`` whose names end in the word that the parameter is about: ``block_fn`` → Block."""
    stem = re.sub(r"_?(layer|cls|class|fn|type|constructor|builder|module|func)s?$", "", word).replace("_", "")
    space = namespace_of(owner)
    if not stem or space is None:
        return []
    return [
        thing
        for thing in vars(space).values()
        if isinstance(thing, type)
        and issubclass(thing, nn.Module)
        and thing is not owner
        and thing.__name__.lower().endswith(stem)
    ][:4]


def _modules(name: str, owner: type, kind: type) -> list[Spec]:
    width = names.FEATURES
    if kind is nn.ModuleList:
        return [Make("nn.ModuleList of Linear", lambda: nn.ModuleList([nn.Linear(width, width)]))]
    found: list[Spec] = []
    if "norm" in name:
        found.append(Make("nn.LayerNorm(32)", lambda: nn.LayerNorm(width)))
    if "act" in name:
        found.append(Make("nn.GELU()", nn.GELU))
    if "conv" in name:
        found.append(Make("nn.Conv2d(32, 32, 3)", lambda: nn.Conv2d(width, width, 3, padding=1)))
    if "embed" in name:
        found.append(Make("nn.Embedding(16, 32)", lambda: nn.Embedding(16, width)))
    return [
        *found,
        Make("nn.Linear(32, 32)", lambda: nn.Linear(width, width)),
        Make("nn.Conv2d(32, 32, 1)", lambda: nn.Conv2d(width, width, 1)),
        Make("nn.Identity()", nn.Identity),
    ]


def _from_name(name: str, owner: type, depth: int) -> list[Spec]:
    word = name.lower()
    if re.search(
        r"(_layer|_cls|_class|_fn|_builder|_type)s?$|^(act|norm|block|layer|attn|mixer|mlp)(_layer)?$|_?act$", word
    ):
        return _classes(nn.Module, name, owner)
    if re.search(r"module$|^fn$|^body$|backbone|^net$|^model$|encoder$|decoder$|^base_layer$|^inner$|projector", word):
        return _modules(word, owner, nn.Module)
    if re.search(r"cfg$|conf(ig)?s?$|^opts?$|^args$|hparams|params$", word):
        return unnamed(owner, depth, candidates)
    if re.search(r"kwargs$|_dict$|mapping", word):
        return [Const({})]
    values = names.values_for(name)
    if not values and re.search(r"mode|type|activation|name|method|strategy|backend|format|impl", word):
        values = list(names.words_for(name))
    return [Const(value) for value in [*values, *names.WIDTHS]]
