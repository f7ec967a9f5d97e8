"""A forward pass that is watched: which inputs each tensor came from, and the operation at which it failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from amplint.frozen import dataclass
from amplint.verify.build.effort import TooLarge
from amplint.verify.tensors import tensors

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_RESULT = 60_000_000
"""Elements of one result beyond which a try is given up: 240 MB of float32."""

_AUGMENTED = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ior__", "__iand__")


@dataclass(frozen=True)
class Failure:
    """The torch operation that raised. ``args`` and ``kwargs`` are its own."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: Exception

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument given by position or name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    def tensors(self) -> list[torch.Tensor]:
        """Its tensor operands, those in lists too."""
        return list(tensors((self.args, self.kwargs)))


class Trace(TorchFunctionMode):
    """Follows tensors by identity. ``steps``: operations that ran. ``failure``: the innermost one that raised.

    A tensor that no watched operation made, and that is not part of the module, may have come from any input.
    """

    def __init__(self, inputs: dict[str, torch.Tensor], constants: list[torch.Tensor]) -> None:
        super().__init__()
        self.names = frozenset(inputs)
        self.steps = 0
        self.failure: Failure | None = None
        self._kept: list[torch.Tensor] = [*constants, *inputs.values()]
        self._origins = {id(tensor): frozenset[str]() for tensor in constants}
        for name, tensor in inputs.items():
            self._origins[id(tensor)] = self._origins.get(id(tensor), frozenset()) | {name}

    def origins(self, tensor: torch.Tensor) -> frozenset[str]:
        """The inputs that ``tensor`` depends on."""
        return self._origins.get(id(tensor), self.names)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            if self.failure is None or self.failure.error is not error:
                self.failure = Failure(getattr(func, "__name__", ""), args, kwargs, error)
            raise
        produced = list(tensors(result))
        written = _written(getattr(func, "__name__", ""), args)
        if produced or written:
            self.steps += bool(produced)
            came_from: frozenset[str] = frozenset()
            for tensor in tensors((args, kwargs)):
                came_from |= self.origins(tensor)
            for tensor in written:
                self._kept.append(tensor)
                self._origins[id(tensor)] = self.origins(tensor) | came_from
            for tensor in produced:
                if tensor.numel() > MOST_RESULT:
                    raise TooLarge
                self._kept.append(tensor)
                self._origins[id(tensor)] = came_from
        return result


def _written(name: str, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """What an operation of that name writes to in place: its first operand, and what that is a view of."""
    in_place = name in ("__setitem__", *_AUGMENTED) or (name.endswith("_") and not name.endswith("__"))
    if not in_place or not args or not isinstance(args[0], torch.Tensor):
        return []
    base = args[0]._base
    return [args[0]] if base is None else [args[0], base]
