"""Batch norm's running statistics in a dtype of their own: CUDA's kernels read and write them in any, the CPU's refuse.

So do modules run whose parameters alone are 16-bit (``fsdp-bf16``). Measured on a GPU with torch 2.11 over float16,
bfloat16, float32 and float64, in training and not. The kernel computes in float32, or float64 if the input is that, and
its result has the input's dtype. The backward pass wants statistics in the weight's dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from amplint.emulation.agreement import SCALAR_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[Any, "tuple[Any, ...]", "dict[str, Any]"], Any]

_STATISTICS = ("running_mean", "running_var")
_PARAMETERS = {
    functional.batch_norm: ("input", *_STATISTICS, "weight", "bias", "training"),
    torch.batch_norm: ("input", "weight", "bias", *_STATISTICS, "training"),
}
_BESIDE = {torch.float16: (torch.float16,), torch.bfloat16: (torch.bfloat16, torch.float32)}
"""Dtypes of weights beside which statistics have any dtype, by the input's."""


def handlers(mapped: Handler) -> dict[Any, Handler]:
    """What calls these functions, by function; ``mapped`` calls one with the arguments that it gets."""

    def handler(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = _PARAMETERS[function]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        value: torch.Tensor = given["input"]
        weight, training = given.get("weight"), bool(given.get("training"))
        own = {name: held for name in _STATISTICS if isinstance(held := given.get(name), torch.Tensor)}
        usual = weight.dtype if isinstance(weight, torch.Tensor) else value.dtype
        if all(held.dtype is usual for held in own.values()) or not _in_any(value.dtype, weight):
            return mapped(function, args, kwargs)
        wide = torch.promote_types(value.dtype, torch.float32)
        called = {name: held.to(wide) if isinstance(held, torch.Tensor) else held for name, held in given.items()}
        copies = {name: called[name] for name in own if called[name] is not own[name]}
        result = mapped(function, (*[called.pop(name) for name in names[: len(args)]], *args[len(names) :]), called)
        if training:
            for name, copy in copies.items():
                own[name].detach().copy_(copy)
        result = result.to(value.dtype)
        refused = _refused_backward(value.dtype, weight, own, training=training)
        if refused is not None and result.requires_grad:
            result.register_hook(lambda _grad: _refuse(refused))
        return result

    return dict.fromkeys(_PARAMETERS, handler)


def _in_any(value: torch.dtype, weight: torch.Tensor | None) -> bool:
    """Whether CUDA's kernel takes statistics in any dtype beside these two."""
    return weight is None or weight.dtype in _BESIDE.get(value, ())


def _refused_backward(
    value: torch.dtype, weight: torch.Tensor | None, statistics: dict[str, torch.Tensor], *, training: bool
) -> str | None:
    """How the backward pass refuses the statistics."""
    if weight is None and not training:
        return None
    wanted = torch.promote_types(value, torch.float32) if weight is None else weight.dtype
    taken = (wanted,) if weight is not None else (wanted, value)
    for name, held in statistics.items():
        if held.dtype not in taken:
            got = SCALAR_TYPES.get(held.dtype, held.dtype)
            return f"Expected {name} to have type {SCALAR_TYPES[wanted]} but got {got}"
    return None


def _refuse(text: str) -> None:
    raise RuntimeError(text)
