"""Modules and arguments in one line each, so that a verdict says what was built and passed."""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.tensors import dtype_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.verify.build.recipe import Recipe

_MOST_ITEMS = 6
_MOST_TEXT = 60


def called_with(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The arguments of a call: ``(float16[2, 16, 64],)``, ``(float16[2, 16, 64], mask=bool[2, 16])``."""
    parts = [value_text(value) for value in args]
    parts += [f"{name}={value_text(value)}" for name, value in kwargs.items()]
    return f"({', '.join(parts)}{',' if len(args) == 1 and not kwargs else ''})"


def value_text(value: Any) -> str:
    """One value, short: a tensor by dtype and shape, a module or another object by its class, a member by its name."""
    if isinstance(value, torch.Tensor):
        return f"{dtype_name(value.dtype)}{list(value.shape)}"
    if isinstance(value, (list, tuple, dict)) and type(value).__module__ == "builtins":
        return _container(value)
    if isinstance(value, functools.partial):
        return f"partial({', '.join(value_text(part) for part in (value.func, *value.args))})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.device)):
        text = repr(value)
        return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__name__)
    return f"{type(value).__name__}(...)"


def _container(value: Any) -> str:
    more = ", ..." if len(value) > _MOST_ITEMS else ""
    if isinstance(value, dict):
        pairs = [f"{key!r}: {value_text(item)}" for key, item in list(value.items())[:_MOST_ITEMS]]
        return f"{{{', '.join(pairs)}{more}}}"
    items = ", ".join(value_text(item) for item in value[:_MOST_ITEMS]) + more
    if isinstance(value, list):
        return f"[{items}]"
    return f"({items}{',' if len(value) == 1 else ''})"


def built_text(recipe: Recipe) -> str:
    """What a recipe makes, with the constructor's arguments: ``Quantizer(dim=64, bits=8)``; a function by its name."""
    module = recipe.make().module
    if not isinstance(module, torch.nn.Module):
        owner = getattr(module, "__self__", None)
        of = owner if isinstance(owner, type) or owner is None else type(owner)
        name = getattr(module, "__name__", type(module).__name__)
        return name if of is None else f"{of.__name__}.{name}"
    kind = type(module)
    with _constructions(kind) as noted:
        module = recipe.make().module
    return noted.get(id(module), f"{kind.__name__}(...)")


@contextlib.contextmanager
def _constructions(kind: type) -> Iterator[dict[int, str]]:
    """Notes how instances of ``kind`` itself are constructed, by their identity."""
    noted: dict[int, str] = {}
    own = vars(kind).get("__init__")
    init: Callable[..., None] = kind.__init__  # type: ignore[misc]

    @functools.wraps(init)
    def noting(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is kind:
            noted[id(self)] = f"{kind.__name__}{_bound(init, self, args, kwargs)}"
        init(self, *args, **kwargs)

    setattr(kind, "__init__", noting)  # noqa: B010 - on a class, as a plain attribute
    try:
        yield noted
    finally:
        if own is None:
            delattr(kind, "__init__")
        else:
            setattr(kind, "__init__", own)  # noqa: B010 - the class's own, whatever it is


def _bound(init: Callable[..., None], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The arguments by the names of the parameters that they go to."""
    try:
        signature = inspect.signature(init)
        arguments = signature.bind(module, *args, **kwargs).arguments
    except (TypeError, ValueError):
        return called_with(args, kwargs)
    named: dict[str, Any] = {}
    rest: tuple[Any, ...] = ()
    for name, value in list(arguments.items())[1:]:
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            rest = value
        elif kind is inspect.Parameter.VAR_KEYWORD:
            named |= value
        else:
            named[name] = value
    parts = [f"{name}={value_text(value)}" for name, value in named.items()]
    return f"({', '.join([*parts, *map(value_text, rest)])})"
