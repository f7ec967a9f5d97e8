"""The emulation as a whole."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import torch

from amplint.emulation import accelerator, kernels
from amplint.emulation.patches import Patches
from amplint.emulation.policy import DEVICES
from amplint.emulation.regions import Regions
from amplint.emulation.tensors import Believed

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Without a wish: the oldest generation that computes in bfloat16.
CAPABILITY = (8, 0)

_running: list[str] = []


@contextlib.contextmanager
def emulated(device: str, *, capability: tuple[int, int] = CAPABILITY) -> Iterator[None]:
    """Run code as if its tensors were on ``device``: its cast policy, its switches, its answers, on CPU kernels.

    :param device: ``cuda``, ``mps`` or ``xpu``.
    :param capability: cuda's compute capability as ``torch.cuda.get_device_capability()`` gives it.
    :raises ValueError: for any other device.
    :raises RuntimeError: within another emulation; for a second device in one process; where this torch has no
        autocast for the device.

    Import the code under test inside: ``@torch.autocast("cuda")`` decides when it is read whether it does anything.
    The kernels stay (they act only where autocast is on), everything else is put back on exit.  Threads started inside
    have torch's own state: no autocast, as on the device, but tensors that say they are on the CPU.
    Compiled code (``torch.compile``) is not emulated.
    """
    if device not in DEVICES:
        raise ValueError(f"cannot emulate {device!r}: use one of {', '.join(DEVICES)}")
    if _running:
        raise RuntimeError(f"{_running[0]} is being emulated already: leave that emulation first")
    if kernels.installed() != device:
        kernels.install(device)
    believed = Believed(device)
    with Patches() as patches:
        _running.append(device)
        patches.callback(_running.clear)
        patches.callback(_forget_compiler_rules)
        patches.callback(_restore_default_device, _default_device())
        Regions(device).enter(patches)
        believed.patch(patches)
        accelerator.patch(patches, device, capability)
        patches.enter_context(believed)
        yield


def _forget_compiler_rules() -> None:
    """torch._dynamo, where it was first imported inside, has written down the functions that were in place then."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None:
        rules.get_torch_obj_rule_map.cache_clear()


def _default_device() -> torch.device | None:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def _restore_default_device(before: torch.device | None) -> None:
    if _default_device() != before:
        torch.set_default_device(before)
