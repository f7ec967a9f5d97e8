"""The ways a target is called: with a padding mask, or twice where there is a cache."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.frozen import dataclass
from amplint.verify.described import called_with
from amplint.verify.tensors import replaced, tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build import Built

_MASK = re.compile(r"(^|_)(padding_mask|attention_mask|attn_mask|pad_mask|mask)$")
_CACHE = re.compile(r"(^|_)(cache|kv_cache|past|past_key_values?|layer_past|incremental_state|mems)($|_)", re.I)
_STATE = re.compile(r"past|cache|mems|state|hx|hidden")


@dataclass(frozen=True)
class Call:
    """How the module is called in one mode.

    ``differentiable``: its float inputs take part in backward, as activations do. ``mask`` is the argument that gets a
    right-padding mask, and ``mask_form`` how it is written: ``keep`` marks what counts with 1 (the usual
    ``attention_mask``), ``pad`` what is padding with True. ``second`` is what the second call gets: ``last`` position
    only, as in decoding, or the ``same`` arguments again.
    """

    mode: str
    differentiable: bool = False
    mask: str | None = None
    mask_form: str = ""
    second: str = ""


def calls(mode: str, built: Built) -> Iterator[Call]:
    """The forms to try for a mode, best first; none where the target has no use for the mode."""
    if mode in ("train", "eval"):
        yield from (Call(mode, differentiable=wanted) for wanted in (True, False))
    elif mode == "eval-no-grad":
        yield Call(mode)
    elif mode == "eval-mask":
        name = _mask_argument(built)
        if name is not None:
            forms = ("pad", "keep") if "padding" in name or "pad" in name else ("keep", "keep-bool", "pad")
            yield from (Call(mode, mask=name, mask_form=form) for form in forms)
    elif mode == "second-call" and _has_cache(built):
        yield from (Call(mode, second=form) for form in ("last", "same"))


def invoke(call: Call, built: Built) -> Any:
    """Call the module as the mode says. Returns what the (last) call returned."""
    kwargs = _keywords(call, built)
    result = built.module(*built.args, **kwargs)
    if call.second:
        again = _second(call.second, replace(built, kwargs=kwargs), result)
        result = built.module(*again.args, **again.kwargs)
    return result


def passed(call: Call, built: Built) -> str:
    """What the (first) call gets, in one line."""
    return called_with(built.args, _keywords(call, built))


def _keywords(call: Call, built: Built) -> dict[str, Any]:
    kwargs = dict(built.kwargs)
    if call.mask is not None:
        kwargs[call.mask] = _mask(call.mask_form, built)
    return kwargs


def _parameters(built: Built) -> dict[str, inspect.Parameter]:
    function = getattr(built.module, "forward", built.module)
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _mask_argument(built: Built) -> str | None:
    """The optional mask that the call does not give yet."""
    if not isinstance(built.module, torch.nn.Module) or _extent(built) is None:
        return None
    names = list(_parameters(built))
    given = {*names[: len(built.args)]} | {name for name, value in built.kwargs.items() if value is not None}
    candidates = [name for name in names if _MASK.search(name) and name not in given]
    return min(candidates, key=lambda name: ("padding" not in name, "attention" not in name), default=None)


def _extent(built: Built) -> tuple[int, int, torch.device] | None:
    """Batch and sequence length of the first input that has them: ids (B, T) or features (B, T, C)."""
    for tensor in tensors((built.args, built.kwargs)):
        if tensor.dim() == 3 and tensor.is_floating_point():
            return tensor.shape[0], tensor.shape[1], tensor.device
        if tensor.dim() == 2 and not tensor.is_floating_point() and tensor.dtype is not torch.bool:
            return tensor.shape[0], tensor.shape[1], tensor.device
    return None


def _mask(form: str, built: Built) -> torch.Tensor:
    extent = _extent(built)
    assert extent is not None
    batch, length, device = extent
    kept = torch.ones(batch, length, dtype=torch.bool)
    kept[0, max(1, length - max(1, length // 3)) :] = False
    mask = ~kept if form == "pad" else kept if form == "keep-bool" else kept.long()
    return mask.to(device)


def _has_cache(built: Built) -> bool:
    """Whether something that survives a call looks like a cache of keys and values."""
    if any(_CACHE.search(name) for name in _parameters(built)):
        return True
    values = [*built.args, *built.kwargs.values()]
    if any("cache" in type(value).__name__.lower() for value in values):
        return True
    if not isinstance(built.module, torch.nn.Module):
        return False
    return any(
        _CACHE.search(name) or "cache" in type(module).__name__.lower()
        for module in built.module.modules()
        for name in ("", *module._buffers, *vars(module))
    )


def _second(form: str, built: Built, result: Any) -> Built:
    """The arguments of the second call; a state that the first returned goes where the signature asks for one.

    A cache that is handed in is handed in again, as the first call left it.
    """
    args, kwargs = built.args, dict(built.kwargs)
    names = list(_parameters(built))
    if form == "last":
        by_position = zip(args, [*names, *[""] * len(args)], strict=False)
        args = tuple(value if _CACHE.search(name) else _cropped(value) for value, name in by_position)
        kwargs = {name: value if _CACHE.search(name) else _cropped(value) for name, value in kwargs.items()}
    free = [n for n in names[len(args) :] if _STATE.search(n) and kwargs.get(n) is None and "mask" not in n]
    free.sort(key=lambda name: _CACHE.search(name) is None)
    returned = getattr(result, "past_key_values", None)
    if returned is None and isinstance(result, tuple) and len(result) == 2:
        returned = result[1]
    if free and returned is not None:
        kwargs[free[0]] = returned
    return replace(built, args=args, kwargs=kwargs)


def _cropped(value: Any) -> Any:
    return replaced(value, _last_position, objects=False)


def _last_position(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() == 3 or (tensor.dim() == 2 and not tensor.is_floating_point()):
        return tensor[:, -1:]
    return tensor
