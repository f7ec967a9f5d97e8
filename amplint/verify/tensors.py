"""Walks nested arguments and results: tensors in tuples, lists, dicts, dataclasses and plain objects."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DEPTH = 6
_FUNCTIONS = (FunctionType, MethodType, functools.partial)


def dtype_named(name: str) -> torch.dtype:
    """``torch.bfloat16`` of ``bfloat16``."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype), name
    return dtype


def dtype_name(dtype: torch.dtype) -> str:
    """``bfloat16`` of ``torch.bfloat16``."""
    return str(dtype).removeprefix("torch.")


def replaced(value: Any, function: Callable[[torch.Tensor], torch.Tensor], *, objects: bool = True) -> Any:
    """The same structure with every tensor replaced.

    Containers are rebuilt; with ``objects``, one that holds tensors in its attributes (a cache, a batch) is changed in
    place, once however often it is met. Modules are left alone: what they hold are not inputs.
    """
    return _replaced(value, function, set() if objects else None, _DEPTH)


def _replaced(
    value: Any, function: Callable[[torch.Tensor], torch.Tensor], changed: set[int] | None, depth: int
) -> Any:
    """``changed`` are the objects met so far; None leaves objects as they are."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if depth == 0:
        return value
    if isinstance(value, tuple):
        items = [_replaced(item, function, changed, depth - 1) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [_replaced(item, function, changed, depth - 1) for item in value]
    if type(value) in (dict, OrderedDict, defaultdict):
        items = [(key, _replaced(item, function, changed, depth - 1)) for key, item in value.items()]
        return defaultdict(value.default_factory, items) if isinstance(value, defaultdict) else type(value)(items)
    if changed is not None and _has_attributes(value) and id(value) not in changed:
        changed.add(id(value))
        for name, item in _attributes(value).items():
            if isinstance(item, (torch.Tensor, tuple, list, dict)) or _has_attributes(item):
                new = _replaced(item, function, changed, depth - 1)
                if new is not item:
                    _set(value, name, new)
    return value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in it, in a stable order; those in an object's attributes once, however often it is met."""
    return _tensors(value, set(), _DEPTH)


def held_by(module: torch.nn.Module | None) -> Iterator[torch.Tensor]:
    """A module's parameters and buffers, and the tensors that it and its submodules hold in plain attributes."""
    for submodule in module.modules() if module is not None else ():
        yield from tensors(vars(submodule))


def _tensors(value: Any, seen: set[int], depth: int) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth == 0:
        return
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item, seen, depth - 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, seen, depth - 1)
    elif _has_attributes(value) and id(value) not in seen:
        seen.add(id(value))
        for item in _attributes(value).values():
            yield from _tensors(item, seen, depth - 1)


def _has_attributes(value: Any) -> bool:
    return (
        (hasattr(value, "__dict__") or dataclasses.is_dataclass(value))
        and not isinstance(value, (type, ModuleType, torch.nn.Module, torch.Generator, *_FUNCTIONS))
        and type(value).__module__ not in ("builtins", "enum", "torch")
    )


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds, also in the slots of a dataclass."""
    slots = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    return {**{field.name: getattr(value, field.name, None) for field in slots}, **getattr(value, "__dict__", {})}


def _set(value: Any, name: str, item: Any) -> None:
    try:
        object.__setattr__(value, name, item)
    except (AttributeError, TypeError):
        return
