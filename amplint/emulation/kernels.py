"""Puts one device's autocast policy over CPU kernels, so that it can be run without the device.

A Python kernel for each operation on the device's list replaces the one at the ``AutocastCPU`` dispatch key; operations
that only the CPU's own list has fall through.  The key lies above autograd, so composite operations, in-place and
``out=`` forms behave as with built-in kernels, and real CPU kernels raise the real errors.  Policies come from
``autocast_policy.json``, as of the torch release that runs.  Process-wide and irreversible: install it in a child
process.

Unlike on the device: every CPU tensor counts as eligible, also one that would have stayed on the host; operations on
tensors with named dimensions (in releases that list them) are not cast.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from amplint.emulation.policy import policies, release

_KEY = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
_FULL = torch.float32
#: libtorch_cuda wraps ``_cudnn_rnn``, which a CPU build lacks: inputs, states and weights are cast to float16, whatever
#: dtype autocast is set to (measured on a GPU with torch 2.11).
_CUDNN_RNN = [f"{kind}.{form}" for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu") for form in ("input", "data")]
#: The CPU's own switch; the module-level names are replaced while a device is emulated.
_dispatch_dtype = torch.get_autocast_dtype

Kernel = Callable[..., Any]
#: (overload, policy) of each outermost listed operation, in the order of the calls.
Log = list[tuple[str, str]]

#: (device, what keeps its kernels registered)
_installed: list[tuple[str, torch.library.Library]] = []
_logs: list[Log] = []


class WeightCache:
    """Autocast's cache of weights cast to low precision: float32 leaves that require grad, until it is cleared.

    ``without_grad``: whether it also keeps casts made under ``no_grad``, as older releases do (a later use of the
    weight then gets no gradient); :func:`install` finds out.
    """

    def __init__(self) -> None:
        self.enabled = False
        self.without_grad = False
        self._casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def cast(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """The tensor in ``dtype``, from the cache where autocast would take it from there."""
        if not (
            self.enabled
            and value.dtype is _FULL
            and value.requires_grad
            and value.is_leaf
            and dtype is _dispatch_dtype("cpu")
            and torch.is_autocast_cache_enabled()
            and not value._is_view()
        ):
            return value.to(dtype)
        known = self._casts.get(id(value))
        if known is not None:
            return known[1]
        result = value.to(dtype)
        if self.without_grad or torch.is_grad_enabled():
            self._casts[id(value)] = (value, result)
        return result

    def clear(self) -> None:
        """Forget all casts."""
        self._casts.clear()


#: Used while a device is emulated; off otherwise, as nobody would clear it.
weights = WeightCache()


def _eligible(value: object) -> bool:
    """Autocast leaves integers and float64 alone."""
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype is not torch.float64


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        return weights.cast(value, dtype) if _eligible(value) and value.dtype is not dtype else value
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
    low = _dispatch_dtype("cpu")
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
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
        "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
        "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
        "or torch.nn.BCEWithLogitsLoss."
    )


def _kernel(overload: Any, policy: str) -> Kernel:
    if policy == "lower":
        return _casting(overload, lambda _values: _dispatch_dtype("cpu"))
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


def _logged(name: str, policy: str, kernel: Kernel) -> Kernel:
    def logged(*args: Any, **kwargs: Any) -> Any:
        for log in _logs:
            log.append((name, policy))
        return kernel(*args, **kwargs)

    return logged


@contextlib.contextmanager
def calls() -> Iterator[Log]:
    """Record the listed operations that are called; the list may be cleared in between."""
    log: Log = []
    _logs.append(log)
    try:
        yield log
    finally:
        _logs.remove(log)


def _caches_without_grad() -> bool:
    """Whether the running torch keeps casts made under ``no_grad``; asked of the CPU's own kernels."""
    weight = torch.ones(1, 1, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.enable_grad():
        with torch.no_grad():
            torch.mm(weight, weight)
        return not torch.mm(weight, weight).requires_grad


def _overload(name: str) -> Any:
    base, _, overload_name = name.partition(".")
    return getattr(getattr(torch.ops.aten, base, None), overload_name or "default", None)


def installed() -> str | None:
    """The device whose policy this process has over its CPU kernels."""
    return _installed[0][0] if _installed else None


def install(device: str) -> tuple[str, ...]:
    """Replace the CPU's policy by the device's, for good.

    :param device: ``cuda``, ``mps``, ``xpu``, or ``cpu`` for a rebuilt policy of its own.
    :returns: the overloads that are now cast as on the device.
    :raises RuntimeError: a policy is installed already, or this torch has no autocast for the device.
    """
    if _installed:
        raise RuntimeError(f"this process has the policy of {installed()}: install {device}'s in another process")
    wanted = {name: entry["policy"] for name, entry in policies(device, release(torch.__version__)).items()}
    if not wanted:
        raise RuntimeError(f"torch {torch.__version__} has no autocast for {device}; use a newer torch")
    if device == "cuda":
        wanted |= dict.fromkeys(_CUDNN_RNN, "lower")
    weights.without_grad = _caches_without_grad()
    own = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCPU")
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")
    dispatcher: Any = library.m
    _installed.append((device, library))
    done = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*Overriding a previously registered kernel")
        for name in sorted({*wanted, *(full.removeprefix("aten::") for full in own if full.startswith("aten::"))}):
            overload = _overload(name)
            if overload is None:
                continue
            if name in wanted:
                half = device == "cuda" and name in _CUDNN_RNN
                cast = _casting(overload, lambda _values: torch.float16) if half else _kernel(overload, wanted[name])
                kernel = _logged(name, wanted[name], cast)
                done.append(name)
            else:
                kernel = torch.library.fallthrough_kernel
            # straight to the dispatcher: Library.impl refuses or allows an override by other rules in each release
            dispatcher.impl(name, "AutocastCPU", kernel, False)
    return tuple(done)
