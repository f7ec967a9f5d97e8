"""bitsandbytes' int8 product of a frozen weight, its CUDA functions replaced by torch functions of the same dtypes.

What is replaced are functions of bitsandbytes/functional.py that call the compiled library; their dtypes are written
there in ``assert`` and ``torch.empty`` lines. Which branch runs is left to bitsandbytes: it asks torch.cuda for the
compute capability.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from stand_ins import bare_packages

bare_packages("bitsandbytes")

FEATURES = 32
"""Rows and columns of the weight: a single tile of the Ampere layout, so that its order of elements does not matter."""

_Matrix = tuple[torch.Tensor, tuple[torch.Size, str]]


def _quantize_rows(a: torch.Tensor, threshold: float = 0.0) -> tuple[torch.Tensor, torch.Tensor, None]:
    """``int8_vectorwise_quant``, from 0.45 on: float16 (rows, columns) to int8 and float32 row scales, no outliers."""
    assert a.dtype == torch.half
    assert threshold == 0.0
    scale = a.float().abs().amax(dim=-1)
    return _int8(a, scale.unsqueeze(-1)), scale, None


def _quantize_both(a: torch.Tensor, threshold: float = 0.0) -> tuple[torch.Tensor | None, ...]:
    """``double_quant``: float16 to int8 by rows and by columns, the float32 scales of both, no outliers."""
    assert a.dtype == torch.half
    assert threshold == 0.0
    rows, columns = a.float().abs().amax(dim=1), a.float().abs().amax(dim=0)
    return _int8(a, rows.unsqueeze(1)), _int8(a, columns), rows, columns, None


def _int8(a: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (a.float() * (127 / scale.clamp_min(1e-12))).round().to(torch.int8)


def _transform(a: torch.Tensor, to_order: str, from_order: str = "row", transpose: bool = False) -> _Matrix:
    """``transform``: another order of the elements in memory, of the same dtype. Here they stay where they are."""
    a = a.t().contiguous() if transpose else a
    return a, (a.shape, to_order)


def _igemmlt(a: torch.Tensor, b: torch.Tensor, state_a: Any, state_b: Any) -> _Matrix:
    """``igemmlt``: int8 times transposed int8 gives int32."""
    product = _int8_linear_matmul(a, b)
    return product, (product.shape, "col32")


def _int8_linear_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``int8_linear_matmul``, from 0.45 on: int8 times transposed int8 gives int32."""
    assert a.dtype == b.dtype == torch.int8
    return torch.matmul(a.int(), b.int().t())


def _mm_dequant(a: torch.Tensor, state: Any, rows: torch.Tensor, columns: torch.Tensor, bias: None) -> torch.Tensor:
    """``mm_dequant``: int32 and float32 scales give float16."""
    return _int8_mm_dequant(a, rows, columns, bias)


def _int8_mm_dequant(a: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, bias: None) -> torch.Tensor:
    """``int8_mm_dequant``, from 0.45 on: int32 and float32 scales give float16."""
    assert a.dtype == torch.int32
    return (a.float() * rows.unsqueeze(1) * columns / 127**2).half()


_CUDA_FUNCTIONS = {
    "double_quant": _quantize_both,
    "transform": _transform,
    "igemmlt": _igemmlt,
    "mm_dequant": _mm_dequant,
    "int8_vectorwise_quant": _quantize_rows,
    "int8_linear_matmul": _int8_linear_matmul,
    "int8_mm_dequant": _int8_mm_dequant,
}


class Int8Linear(torch.nn.Module):
    """A frozen int8 layer as bitsandbytes.nn.Linear8bitLt holds and calls it, without bias and outliers."""

    def __init__(self, functions: Any) -> None:
        super().__init__()
        self.functions = functions
        self.state = functions.MatmulLtState()
        self.state.has_fp16_weights = False
        self.state.CB, self.state.SCB, _ = _quantize_rows(torch.randn(FEATURES, FEATURES).half())
        self.weight = torch.nn.Parameter(self.state.CB, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.is_training = self.training
        out: torch.Tensor = self.functions.MatMul8bitLt.apply(x, self.weight, None, None, self.state)
        if self.state.CxB is not None:
            self.state.CB = None  # as Linear8bitLt does once the weight lies in the layout of the int8 tensor cores
        return out


def int8_linear() -> tuple[torch.nn.Module, tuple[torch.Tensor], dict[str, object]]:
    """An activation (4, FEATURES) and a weight (FEATURES, FEATURES)."""
    functional = importlib.import_module("bitsandbytes.functional")
    for name, function in _CUDA_FUNCTIONS.items():
        if hasattr(functional, name):
            setattr(functional, name, function)
    functions = importlib.import_module("bitsandbytes.autograd._functions")
    return Int8Linear(functions), (torch.randn(4, FEATURES),), {}
