"""Backward passes of float16 convolutions on the CPU: in float32, rounded, which is what a GPU does, and much faster.

A kernel of the CPU's own stands for torch's as long as that is asked for. It is no dispatch mode, so that nothing else
in the run takes another way.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_BACKWARD: Any = torch.ops.aten.convolution_backward.default


@contextlib.contextmanager
def half_convolutions() -> Iterator[None]:
    """Have ``convolution_backward`` of float16 tensors calculate in float32, in this process, until the block ends."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("convolution_backward", _calculated, "CPU")
    try:
        yield
    finally:
        library._destroy()


def _calculated(gradient: torch.Tensor, given: torch.Tensor, weight: torch.Tensor, *settings: Any) -> Any:
    tensors = (gradient, given, weight)
    if any(tensor.dtype is not torch.float16 for tensor in tensors):
        return _torchs_own(*tensors, *settings)
    found = _torchs_own(*(tensor.float() for tensor in tensors), *settings)
    return tuple(None if each is None else each.half() for each in found)


def _torchs_own(*arguments: Any) -> Any:
    return _BACKWARD._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *arguments)
