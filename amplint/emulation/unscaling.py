"""Gradients in bfloat16 that a GradScaler is to unscale: CUDA has no kernel for that (pytorch#127176), the CPU has one,
so it is refused here as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.emulation.agreement import Check

_TEXT = "\"_amp_foreach_non_finite_check_and_unscale_cuda\" not implemented for 'BFloat16'"


def checks() -> dict[Any, Check]:
    """What to ask before a call, by function."""
    return {torch._amp_foreach_non_finite_check_and_unscale_: _check}


def _check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    gradients: Sequence[torch.Tensor] = args[0] if args else kwargs["self"]
    if any(gradient.dtype is torch.bfloat16 for gradient in gradients):
        raise NotImplementedError(_TEXT)
