"""Memory that a constructor leaves unset gets numbers: what it happens to hold differs from one build to the next.

Libraries construct with ``torch.empty`` and fill from a checkpoint or in an ``init_weights`` of their own.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.tensors import tensors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SPREAD = 0.02
"""Standard deviation of what takes the place of unset weights, that of most libraries' initialisation."""


@contextlib.contextmanager
def marked() -> Iterator[None]:
    """Within it, torch fills new unset memory: floats with NaN, integers with their greatest value.

    That is what torch does while deterministic algorithms are asked for; an operation that has none only warns.
    """
    deterministic: Any = torch.utils.deterministic
    filling = deterministic.fill_uninitialized_memory
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        deterministic.fill_uninitialized_memory = filling
        torch.set_deterministic_debug_mode(before)


def fill(module: object, values: object, seed: int) -> None:
    """Put small random numbers, the same for a seed, where :func:`marked` left NaN, and zero in unset integers.

    ``module`` with parameters and buffers, ``values`` with any tensors, both changed in place. An input counts as unset
    only if it is so throughout.
    """
    generator = torch.Generator().manual_seed(seed)
    held = [*module.parameters(), *module.buffers()] if isinstance(module, torch.nn.Module) else []
    with torch.no_grad():
        for tensor in _plain(held):
            _fill(tensor, generator)
        for tensor in _plain(tensors(values)):
            if not tensor.is_floating_point() or torch.isnan(tensor).all():
                _fill(tensor, generator)


def _fill(tensor: torch.Tensor, generator: torch.Generator) -> None:
    if tensor.is_floating_point():
        unset = torch.isnan(tensor)
        if unset.any():
            drawn = torch.randn(tensor.shape, generator=generator, dtype=torch.float32) * SPREAD
            tensor.copy_(torch.where(unset, drawn.to(tensor.dtype), tensor))
    elif bool((tensor == torch.iinfo(tensor.dtype).max).all()):
        tensor.zero_()


def _plain(found: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Those with elements on the CPU that can be written one by one."""
    for tensor in found:
        lazy = torch.nn.parameter.is_lazy(tensor)
        if lazy or tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_nested:
            continue
        wide = tensor.dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        whole = tensor.dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
        if tensor.numel() and (wide or whole):
            yield tensor
