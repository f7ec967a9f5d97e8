"""Generates ``signatures.json``: what torch's mixed-precision API takes, as Python's own ``inspect`` reads it.

Usage: ``python -m amplint.data.generate_signatures [OUT]`` (a second).
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import torch

MODULES = {
    "torch": ("autocast",),
    "torch.amp": ("autocast", "GradScaler", "custom_fwd", "custom_bwd"),
    "torch.amp.autocast_mode": ("autocast", "custom_fwd", "custom_bwd"),
    "torch.amp.grad_scaler": ("GradScaler",),
    "torch.cuda.amp": ("autocast", "GradScaler", "custom_fwd", "custom_bwd"),
    "torch.cuda.amp.autocast_mode": ("autocast", "custom_fwd", "custom_bwd"),
    "torch.cuda.amp.grad_scaler": ("GradScaler",),
    "torch.cpu.amp": ("autocast", "GradScaler"),
    "torch.cpu.amp.autocast_mode": ("autocast",),
    "torch.cpu.amp.grad_scaler": ("GradScaler",),
}
"""The modules that the API is imported from, and what of it each has."""
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def signature(function: Any) -> dict[str, list[str]]:
    """The parameters that a callable takes by position, those by keyword alone, and those without a default."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    open_ended = [p for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {
        "positional": [p.name for p in parameters if p.kind in BY_POSITION],
        "keyword": [p.name for p in parameters if p.kind is p.KEYWORD_ONLY],
        "required": [p.name for p in parameters if p.default is p.empty and p not in open_ended],
        "more": [p.name for p in open_ended],
    }


def table() -> dict[str, Any]:
    """The signatures by qualified name, and those of a scaler's methods by the method's."""
    signatures = {
        f"{module}.{name}": signature(getattr(importlib.import_module(module), name))
        for module, names in MODULES.items()
        for name in names
    }
    public = [name for name in dir(torch.amp.GradScaler) if not name.startswith("_")]
    methods = {name: signature(getattr(torch.amp.GradScaler, name)) for name in public}
    return {"signatures": signatures, "scaler": methods}


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("signatures.json")
    head = {"generator": "python -m amplint.data.generate_signatures", "torch": torch.__version__.partition("+")[0]}
    out.write_text(json.dumps(head | table(), indent=1) + "\n", encoding="utf-8")
