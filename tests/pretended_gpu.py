"""A GPU that torch's CPU build takes to be there: nothing runs on it, but autograd starts a thread for it.

The stub that is registered answers 0 to everything; torch then puts its own guard without a device in its place.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_REGISTER = "_ZN3c104impl19registerDeviceGuardENS_10DeviceTypeEPKNS0_24DeviceGuardImplInterfaceE"
_CUDA = 1
_kept: list[object] = []


def pretend() -> bool:
    """Whether torch now believes that there is a GPU. Once in a process, before the first backward pass."""
    libraries = [p for p in (Path(torch.__file__).parent / "lib").glob("libc10.*") if p.suffix in (".so", ".dylib")]
    if not libraries or torch.version.cuda is not None:
        return False
    library = ctypes.CDLL(str(libraries[0]))
    answer = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: 0)
    methods = (ctypes.c_void_p * 64)(*[ctypes.cast(answer, ctypes.c_void_p).value] * 64)
    guard = (ctypes.c_void_p * 4)(ctypes.addressof(methods), 0, 0, 0)
    _kept.extend([library, answer, methods, guard])
    register = getattr(library, _REGISTER)
    register.argtypes, register.restype = [ctypes.c_int8, ctypes.c_void_p], None
    register(_CUDA, ctypes.addressof(guard))
    torch._C._ensureCUDADeviceGuardSet()
    registry = (ctypes.c_void_p * (_CUDA + 1)).in_dll(library, _REGISTRY)
    return registry[_CUDA] != ctypes.addressof(guard)
