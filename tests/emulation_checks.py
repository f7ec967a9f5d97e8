"""Checks of what code under an emulated device sees and does: ``python tests/emulation_checks.py DEVICE`` runs all.

Prints JSON: the name of each check with the empty string, or the traceback of its failure.  Needs only torch and
``amplint.emulation``, so that it also runs under old releases of torch.  The checks are in ``emulation_regions.py``,
``emulation_gradients.py`` and ``emulation_device.py``.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from amplint.emulation import DEVICES, emulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FULL, HALF, BF16 = torch.float32, torch.float16, torch.bfloat16
DEVICE = sys.argv[-1] if sys.argv[-1] in DEVICES else DEVICES[0]
CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Run inside the emulation."""

    def inside() -> None:
        with emulated(DEVICE):
            function()

    CHECKS[function.__name__] = inside
    return function


def outside(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS[function.__name__] = function
    return function


def only(*devices: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    return (lambda function: function) if DEVICE in devices else lambda function: CHECKS.pop(function.__name__)


@contextmanager
def raising(kind: Any, text: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        if text not in str(error):
            raise
    else:
        raise AssertionError(f"no {kind}: {text}")


def layer() -> nn.Linear:
    return nn.Linear(4, 4, device=DEVICE)


def rows(*shape: int, **options: Any) -> torch.Tensor:
    return torch.randn(*(shape or (2, 4)), device=DEVICE, **options)


def region(**options: Any) -> torch.autocast:
    return torch.autocast(DEVICE, **{"dtype": BF16, **options})


def run() -> dict[str, str]:
    """Each check's name with the traceback of its failure, or nothing."""
    results = {}
    torch.manual_seed(0)
    for name, function in CHECKS.items():
        try:
            function()
            results[name] = ""
        except Exception:
            results[name] = traceback.format_exc()
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    for part in ("emulation_regions", "emulation_gradients", "emulation_device"):
        importlib.import_module(part)
    print(json.dumps(importlib.import_module("emulation_checks").run()))
