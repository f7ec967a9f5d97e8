"""Operands that the CPU's kernels take in different dtypes and CUDA's do not, refused here as well.

Which they are was measured on a GPU (``cuda.json``); ``ops.json`` says what the CPU refuses by itself. Where autocast
casts all operands of an operation, they agree.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import amplint.data

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[tuple[Any, ...], dict[str, Any]], None]
    """Raises RuntimeError for arguments that CUDA refuses."""

SCALAR_TYPES = {torch.float16: "Half", torch.bfloat16: "BFloat16", torch.float32: "Float", torch.float64: "Double"}
"""How torch's errors call dtypes."""


@cache
def _entries(table: str) -> dict[str, Any]:
    entries: dict[str, Any] = json.loads(Path(amplint.data.__file__).with_name(table).read_text())["ops"]
    return entries


def checks() -> dict[Any, Check]:
    """What to ask before a call, by function."""
    found: dict[Any, Check] = {}
    for name, change in _entries("cuda.json").items():
        entry = _entries("ops.json").get(name)
        if entry is None:
            continue
        own = [set(group) for group in entry.get("strict", ())]
        groups = [group for group in change.get("strict") or () if not any(set(group) <= one for one in own)]
        function = _resolved(name)
        if groups and function is not None:
            found[function] = _check(entry["params"], groups, cast="cuda" in entry.get("policy", {}))
    return found


def _resolved(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def _check(params: list[str], groups: list[list[str]], *, cast: bool) -> Check:
    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if cast and torch.is_autocast_enabled("cuda"):
            return
        given = {**dict(zip(params, args, strict=False)), **kwargs}
        for group in groups:
            dtypes = [v.dtype for name in group if isinstance(v := given.get(name), torch.Tensor)]
            other = next((dtype for dtype in dtypes if dtype is not dtypes[0]), None)
            if other is not None:
                first, second = (SCALAR_TYPES.get(dtype, str(dtype)) for dtype in (dtypes[0], other))
                raise RuntimeError(f"expected scalar type {first} but found {second}")

    return check
