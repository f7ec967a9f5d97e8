"""liger-kernel's fused linear cross entropy, its two Triton kernels replaced by torch functions.

The dtypes of the stand-ins are those of the kernels (liger_kernel/ops/cross_entropy.py and ops/utils.py), which load
into float32 registers and store with the dtype of the tensor they write to.
"""

from __future__ import annotations

from typing import Any

import torch
from stand_ins import bare_packages, replace_kernels, triton_without_kernels

bare_packages("liger_kernel")
triton_without_kernels()

HIDDEN, VOCABULARY, TOKENS = 16, 24, 8


def _cross_entropy(
    *,
    X_ptr: torch.Tensor,
    Y_ptr: torch.Tensor,
    loss_ptr: torch.Tensor,
    n_non_ignore: int,
    ignore_index: int,
    reduction: str,
    HAS_GRADIENTS: bool = True,
    **_rest: Any,
) -> None:
    """``liger_cross_entropy_kernel``: the loss of every row into ``loss_ptr``, and its gradient over the logits.

    Logits (rows, classes) in any dtype, which they keep; the computation and the loss are float32. Without smoothing,
    softcapping, z-loss and class weights, which the factory does not ask for.
    """
    logits = X_ptr.float()
    kept = Y_ptr != ignore_index
    scale = 1 / n_non_ignore if reduction == "mean" else 1.0
    loss = torch.nn.functional.cross_entropy(logits, Y_ptr, reduction="none", ignore_index=ignore_index)
    loss_ptr.copy_(loss * scale)
    if HAS_GRADIENTS:
        target = torch.nn.functional.one_hot(Y_ptr.clamp(min=0), logits.shape[1])
        X_ptr.copy_((logits.softmax(-1) - target) * kept.unsqueeze(1) * scale)


def _element_mul(
    X_ptr: torch.Tensor, X_stride: int, grad_output_ptr: torch.Tensor, n_cols: int, **_options: Any
) -> None:
    """``element_mul_kernel``: multiplies a tensor by a scalar in place, in the tensor's dtype, unseen by autograd."""
    X_ptr.data.mul_(grad_output_ptr)


class Head(torch.nn.Module):
    """The last layer of a language model and its loss, as LigerFusedLinearCrossEntropyLoss calls the Function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.randn(VOCABULARY, HIDDEN) * HIDDEN**-0.5)

    def forward(self, hidden: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        result = self.function.apply(hidden, self.weight, target)
        loss: torch.Tensor = result[0] if isinstance(result, tuple) else result
        return loss


def head() -> tuple[torch.nn.Module, tuple[torch.Tensor, torch.Tensor], dict[str, object]]:
    """Hidden states (TOKENS, HIDDEN) and class numbers (TOKENS,), without bias, which would hide the failure."""
    module = replace_kernels(
        "liger_kernel.ops.fused_linear_cross_entropy",
        {"liger_cross_entropy_kernel": _cross_entropy, "element_mul_kernel": _element_mul},
    )
    arguments = torch.randn(TOKENS, HIDDEN), torch.randint(0, VOCABULARY, (TOKENS,))
    return Head(module.LigerFusedLinearCrossEntropyFunction), arguments, {}
