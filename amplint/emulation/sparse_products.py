"""Products of a sparse COO tensor with a dense one in 16 bit, which CUDA has no kernels for and the CPU has since torch
2.4: refused here as well.

What CUDA has is read in its source, as in :mod:`amplint.infer.torch_model.sparse`. Autocast casts both operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from amplint.emulation.agreement import SCALAR_TYPES

if TYPE_CHECKING:
    from amplint.emulation.agreement import Check

_LOW = (torch.float16, torch.bfloat16)
_NAMES = ("mm", "matmul", "addmm", "mv", "bmm")


def checks() -> dict[Any, Check]:
    """What to ask before a call, by function."""
    named = [getattr(holder, name) for holder in (torch, torch.Tensor) for name in _NAMES]
    return dict.fromkeys((*named, torch.sparse.mm, torch.sparse.addmm), _check)


def _check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    given = (*args, *(value for name, value in kwargs.items() if name != "out"))
    factors = [value for value in given if isinstance(value, torch.Tensor)][-2:]
    if sum(factor.layout is torch.sparse_coo for factor in factors) != 1:
        return
    cast = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
    for factor in factors:
        eligible = factor.is_floating_point() and factor.dtype is not torch.float64
        dtype = cast if cast is not None and eligible else factor.dtype
        if dtype in _LOW:
            raise NotImplementedError(f"\"addmm_sparse_cuda\" not implemented for '{SCALAR_TYPES[dtype]}'")
