"""Puts one device's autocast policy over CPU kernels, so that it can be measured without the device.

A Python kernel for each operation on the device's list replaces the one at the ``AutocastCPU`` dispatch key; operations
that only the CPU's own list has fall through.  The key lies above autograd, so composite operations, in-place and
``out=`` forms behave as with built-in kernels, and real CPU kernels raise the real errors.  Policies come from
``autocast_policy.json``.  Process-wide and irreversible: install it in a child process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

_KEY = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
_FULL = torch.float32
#: libtorch_cuda wraps ``_cudnn_rnn`` (inputs, hidden state, weights to low precision); a CPU build lacks that kernel.
_CUDNN_RNN = [f"{kind}.{form}" for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu") for form in ("input", "data")]

Kernel = Callable[..., Any]
#: (overload, policy) of each outermost listed operation, in the order of the calls.
Log = list[tuple[str, str]]

_installed: list[torch.library.Library] = []


def _eligible(value: object) -> bool:
    """Autocast leaves integers and float64 alone."""
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype is not torch.float64


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if _eligible(value) else value
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        return type(value)(_cast(item, dtype) for item in value)
    return value


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, torch.Tensor))


def _widest(values: Iterable[Any]) -> torch.dtype:
    """The dtype that the promote policy casts to; it refuses any third floating dtype."""
    low = torch.get_autocast_dtype("cpu")
    widest = low
    for tensor in _tensors(values):
        if not _eligible(tensor):
            continue
        if _FULL in (widest, tensor.dtype):
            widest = _FULL
        elif tensor.dtype is not low:
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return widest


def _below(overload: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the operation with autocast out of the way."""
    with torch._C._ExcludeDispatchKeyGuard(_KEY):
        return overload(*args, **kwargs)


def _casting(overload: Any, dtype: Callable[[list[Any]], torch.dtype]) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        to = dtype([*args, *kwargs.values()])
        return _below(overload, *[_cast(a, to) for a in args], **{k: _cast(v, to) for k, v in kwargs.items()})

    return kernel


def _setting_dtype(overload: Any) -> Kernel:
    """float32 through the operation's own ``dtype=``, unless the caller gave one."""
    position = [argument.name for argument in overload._schema.arguments].index("dtype")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if _eligible(args[0]):
            if position < len(args):
                args = (*args[:position], args[position] or _FULL, *args[position + 1 :])
            elif kwargs.get("dtype") is None:
                kwargs["dtype"] = _FULL
        return _below(overload, *args, **kwargs)

    return kernel


def _appending_dtype(overload: Any) -> Kernel:
    """``norm`` goes to its overload that takes a dtype."""

    def kernel(self: torch.Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
        dtype = _FULL if _eligible(self) else self.dtype
        if overload._overloadname == "Scalar":
            return _below(torch.ops.aten.norm.ScalarOpt_dtype, self, p, dtype=dtype)
        return _below(torch.ops.aten.norm.ScalarOpt_dim_dtype, self, p, dim, keepdim, dtype=dtype)

    return kernel


def _refusing(*_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError("torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.")


def _kernel(overload: Any, policy: str) -> Kernel:
    if policy == "lower":
        return _casting(overload, lambda _values: torch.get_autocast_dtype("cpu"))
    if policy == "fp32":
        return _casting(overload, lambda _values: _FULL)
    if policy == "promote":
        return _casting(overload, _widest)
    if policy == "fp32_set_opt_dtype":
        return _setting_dtype(overload)
    if policy == "fp32_append_dtype":
        return _appending_dtype(overload)
    assert policy == "banned", policy
    return _refusing


def _logged(name: str, policy: str, kernel: Kernel, log: Log) -> Kernel:
    def logging(*args: Any, **kwargs: Any) -> Any:
        log.append((name, policy))
        return kernel(*args, **kwargs)

    return logging


def policies(device: str) -> dict[str, dict[str, str]]:
    """Overload -> ``policy`` and, where it is not the oldest on record, ``since``, for one device."""
    table = json.loads(Path(__file__).with_name("autocast_policy.json").read_text())["ops"]
    return {name: entry[device] for name, entry in table.items() if device in entry}


def install(device: str) -> Log:
    """Replace the CPU's policy by the device's, for good; listed operations add themselves to the log returned."""
    if _installed:
        raise RuntimeError("a policy is already installed in this process")
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")  # type: ignore[no-untyped-call]
    _installed.append(library)
    log: Log = []
    wanted = {name: entry["policy"] for name, entry in policies(device).items()}
    if device == "cuda":
        wanted |= dict.fromkeys(_CUDNN_RNN, "lower")
    for name in sorted({*wanted, *policies("cpu")}):
        base, _, overload_name = name.partition(".")
        overload = getattr(getattr(torch.ops.aten, base, None), overload_name or "default", None)
        if overload is None:
            continue
        if name in wanted:
            implementation = _logged(name, wanted[name], _kernel(overload, wanted[name]), log)
        else:
            implementation = torch.library.fallthrough_kernel
        library.impl(f"aten::{name}", implementation, allow_override=True)  # type: ignore[no-untyped-call]
    return log
