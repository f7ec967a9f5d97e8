"""The ranges of floating dtypes, and the operations that refuse a number beyond them."""

from __future__ import annotations

from amplint.infer.lattice.dtypes import BITS

LARGEST = {
    BITS["float16"]: 65504.0,
    BITS["bfloat16"]: 3.3895313892515355e38,
    BITS["float32"]: 3.4028234663852886e38,
    BITS["float64"]: 1.7976931348623157e308,
}
"""The largest finite number of a dtype, by its bit: ``torch.finfo(dtype).max``."""
_REFUSE = {
    "masked_fill": ("value",),
    "fill": ("value",),
    "full": ("fill_value",),
    "full_like": ("fill_value",),
    "new_full": ("fill_value",),
    "fill_diagonal": ("fill_value",),
    "index_fill": ("value",),
    "scatter": ("src", "value"),
    "pad": ("value",),
    "threshold": ("value",),
}
_REFUSE_ON_CPU = {
    "clamp": ("min", "max"),
    "clip": ("min", "max"),
    "clamp_min": ("min",),
    "clamp_max": ("max",),
    "hardtanh": ("min_val", "max_val"),
}
"""Bounds are refused by the CPU's kernels alone: CUDA's read them in float32 (``opmath_type`` in
aten/src/ATen/native/cuda/TensorCompare.cu, which ``hardtanh`` calls too), where one beyond the dtype bounds nothing."""


def refusing(op: str, device: str) -> tuple[str, ...]:
    """The parameters of an operation whose number raises if it is out of range."""
    short = op.rpartition(".")[2].rstrip("_")
    return _REFUSE.get(short, ()) or (_REFUSE_ON_CPU.get(short, ()) if device == "cpu" else ())
