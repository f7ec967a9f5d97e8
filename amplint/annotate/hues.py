"""One colour and underline for each sort of dtype, on the page."""

from __future__ import annotations

HUES = ("f32", "bf16", "f16", "f64", "complex", "other", "several", "none")
"""Names of styles in ``page.css``, in the order of the legend; ``none`` is for what is not known."""

_OF_DTYPE = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float64": "f64"}


def hue(dtype: tuple[str, ...] | None) -> str:
    """The style of a dtype, given as the torch names that are possible."""
    if dtype is None:
        return "none"
    if len(dtype) > 1:
        return "several"
    return _OF_DTYPE.get(dtype[0], "complex" if dtype[0].startswith("complex") else "other")
