"""Autocast's switches while a device is emulated.

``torch.autocast``, ``custom_fwd``, ``checkpoint`` and code that sets flags by hand all go through a few functions of
the ``torch`` namespace.  Replacing those leaves every class as it is, wherever it was imported.  A switch of the
emulated device also turns the CPU's dispatch, where the policy is installed; a switch of the CPU turns nothing but its
own display, since CPU autocast does nothing to a device's tensors.  Like torch's switches, they belong to the thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

from amplint.emulation import kernels

if TYPE_CHECKING:
    from amplint.emulation.patches import Patches

_CPU_DEFAULT = torch.bfloat16
_is_enabled = torch.is_autocast_enabled
_get_dtype = torch.get_autocast_dtype
_set_enabled = torch.set_autocast_enabled
_set_dtype = torch.set_autocast_dtype
_clear_cache = torch.clear_autocast_cache
#: TorchScript knows functions by their address: they have to outlive the emulation.
_scriptable: list[object] = []


class _Display(threading.local):
    """What code under test sees of the CPU's autocast."""

    enabled = False
    dtype = _CPU_DEFAULT


class Regions:
    """The replaced functions, for one device."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._cpu = _Display()

    def is_enabled(self, device_type: str = "cuda") -> bool:
        """``torch.is_autocast_enabled``, which without an argument means cuda."""
        return self._cpu.enabled if device_type == "cpu" else _is_enabled(device_type)

    def get_dtype(self, device_type: str) -> torch.dtype:
        """``torch.get_autocast_dtype``."""
        return self._cpu.dtype if device_type == "cpu" else _get_dtype(device_type)

    def set_enabled(self, *args: Any, **kwargs: Any) -> None:
        """``torch.set_autocast_enabled(device_type, enabled)``, or with one argument, of cuda."""
        if "device_type" not in kwargs and len(args) + len(kwargs) == 1:
            args = ("cuda", *args)
        self._set_enabled(*args, **kwargs)

    def _set_enabled(self, device_type: str, enabled: bool) -> None:
        if device_type == "cpu":
            self._cpu.enabled = enabled
            return
        _set_enabled(device_type, enabled)
        if device_type == self._device:
            _set_dtype("cpu", _get_dtype(device_type))
            _set_enabled("cpu", enabled)

    def set_dtype(self, device_type: str, dtype: torch.dtype) -> None:
        """``torch.set_autocast_dtype``."""
        if device_type == "cpu":
            self._cpu.dtype = dtype
            return
        _set_dtype(device_type, dtype)
        if device_type == self._device:
            _set_dtype("cpu", dtype)

    def clear_cache(self) -> None:
        """``torch.clear_autocast_cache``."""
        kernels.weights.clear()
        _clear_cache()

    def enter(self, patches: Patches) -> None:
        """Switch autocast off and replace the functions; ``patches`` puts everything back."""
        for device in (self._device, "cpu"):
            patches.callback(_set_dtype, device, _get_dtype(device))
            patches.callback(_set_enabled, device, _is_enabled(device))
        patches.callback(setattr, kernels.weights, "enabled", kernels.weights.enabled)
        patches.callback(kernels.weights.clear)
        kernels.weights.enabled = True
        self._set_enabled(self._device, False)
        functions = {
            "is_autocast_enabled": self.is_enabled,
            "get_autocast_dtype": self.get_dtype,
            "set_autocast_enabled": self.set_enabled,
            "set_autocast_dtype": self.set_dtype,
            "clear_autocast_cache": self.clear_cache,
            "is_autocast_cpu_enabled": lambda: self.is_enabled("cpu"),
            "get_autocast_cpu_dtype": lambda: self.get_dtype("cpu"),
            "set_autocast_cpu_enabled": lambda enabled: self._set_enabled("cpu", enabled),
            "set_autocast_cpu_dtype": lambda dtype: self.set_dtype("cpu", dtype),
            "get_autocast_gpu_dtype": lambda: self.get_dtype("cuda"),
            "set_autocast_gpu_dtype": lambda dtype: self.set_dtype("cuda", dtype),
        }
        for name, function in functions.items():
            _scriptable.append(function)
            torch.jit._builtins._register_builtin(function, f"aten::{name}")
            patches.set(torch, name, function)
            patches.set(torch._C, name, function)
