"""Autocast regions that say that they are in float16."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.infer.flow.training.program import Program

_FLOAT16 = ("torch.float16", "torch.half")


def is_of_float16(region: ast.Call, program: Program) -> bool:
    """Whether a call of an autocast class names float16, or names none for CUDA, whose default it is."""
    second = region.args[1] if len(region.args) > 1 else None
    named = {keyword.arg: keyword.value for keyword in region.keywords}
    legacy = (program.name(region.func) or "").startswith("torch.cuda.amp.")
    dtype = named.get("dtype", second)
    if dtype is not None:
        return program.name(dtype) in _FLOAT16
    device = named.get("device_type", region.args[0] if region.args else None)
    return legacy or (isinstance(device, ast.Constant) and device.value == "cuda")
