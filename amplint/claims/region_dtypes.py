"""The dtype of autocast regions, as their calls say it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.infer.flow.training.program import Program

_FLOAT16 = ("torch.float16", "torch.half")


def region_dtype(region: ast.Call, program: Program) -> str | None:
    """The qualified name of the dtype that a call of an autocast class is given; CUDA's default where it is given none.

    None where what it is given has no name or is not seen, or the default is another device's.
    """
    named = {keyword.arg: keyword.value for keyword in region.keywords}
    unseen = None in named or any(isinstance(argument, ast.Starred) for argument in region.args)
    dtype = named.get("dtype", region.args[1] if len(region.args) > 1 and not unseen else None)
    if dtype is not None or unseen:
        return program.name(dtype) if dtype is not None else None
    legacy = (program.name(region.func) or "").startswith("torch.cuda.amp.")
    device = named.get("device_type", region.args[0] if region.args else None)
    return "torch.float16" if legacy or (isinstance(device, ast.Constant) and device.value == "cuda") else None


def is_of_float16(region: ast.Call, program: Program) -> bool:
    """Whether a call of an autocast class is for float16."""
    return region_dtype(region, program) in _FLOAT16
