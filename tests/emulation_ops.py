"""Calls of operations on cuda's list, run in the emulation or on fake tensors: ``python tests/emulation_ops.py WAY``.

``operations`` prints what became of every OpInfo sample that reaches a listed operation in the emulation, which a fork
runs, as JSON: the dtypes of the results, or ``raises``; and the same for cuda's own autocast kernels, which run on fake
tensors; ``cannot run`` where a build without CUDA stops them.  ``modules-emulated`` and ``modules-fake`` do so with
modules.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import logging
import multiprocessing
import re
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLES, LARGEST = 2, 5_000
CUDA = 1
#: What stops fake tensors of cuda in a build without it, whatever their dtypes.
NOT_FAKE = re.compile(
    r"not linked with support|not compiled with CUDA|accelerator|DataDependent|DynamicOutputShape|UnsupportedOperator"
)
LOWS = {"float16": torch.float16, "bfloat16": torch.bfloat16}
FULL = torch.float32
Case = tuple[str, int, str, str]


def opinfos() -> Iterator[Any]:
    from amplint.data._catalog import op_db

    for op in op_db:
        if FULL in op.supported_dtypes("cpu") and not op.name.startswith(("jiterator", "torch.ops", "sparse", "_")):
            yield op


def samples(op: Any) -> list[Any]:
    torch.manual_seed(0)
    found = itertools.islice(op.sample_inputs("cpu", FULL, requires_grad=False), 4 * SAMPLES)
    small = [s for s in found if not isinstance(s.input, torch.Tensor) or 0 < s.input.numel() <= LARGEST]
    return small[:SAMPLES]


@cache
def sampled() -> list[tuple[Any, list[Any]]]:
    return [(op, samples(op)) for op in opinfos()]


def given(value: Any, dtypes: Iterator[torch.dtype], device: str) -> Any:
    """The argument on the device, its float32 tensors in the dtypes that come next."""
    if isinstance(value, torch.Tensor):
        return value.to(device, next(dtypes)) if value.dtype is FULL else value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(given(item, dtypes, device) for item in value)
    if isinstance(value, torch.device) or value == "cpu":
        return device
    return value


def outcome(run: Callable[[], Any]) -> Any:
    try:
        out = run()
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        return "cannot run" if NOT_FAKE.search(f"{type(error).__name__}: {error}") else "raises"
    results = out if isinstance(out, (tuple, list)) else [out]
    return [str(r.dtype) for r in results if isinstance(r, torch.Tensor)]


def called(op: Any, sample: Any, inputs: str, low: torch.dtype, device: str) -> Any:
    """The call with all floating tensors wide, all narrow, or in turn narrow and wide."""
    dtypes = {"full": [FULL], "low": [low], "mixed": [low, FULL]}[inputs]
    turn = itertools.cycle(dtypes)
    args = [given(value, turn, device) for value in (sample.input, *sample.args)]
    kwargs = {name: given(value, turn, device) for name, value in sample.kwargs.items()}
    return op.op(*args, **kwargs)


def register_cuda_guard() -> list[Any]:
    """A device guard for cuda whose every method returns 0; torch then puts its own in the place, which does nothing.

    Without any guard, as in builds without CUDA, most calls on fake cuda tensors raise. What is returned must live on.
    """
    if torch.version.cuda or torch.version.hip:
        return []
    path = next(p for p in (Path(torch.__file__).parent / "lib").glob("libc10.*") if p.suffix in (".so", ".dylib"))
    c10 = ctypes.CDLL(str(path))
    nothing = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: 0)
    methods = (ctypes.c_void_p * 64)(*([ctypes.cast(nothing, ctypes.c_void_p).value] * 64))
    guard = (ctypes.c_void_p * 4)(ctypes.addressof(methods), 0, 0, 0)
    register = c10._ZN3c104impl19registerDeviceGuardENS_10DeviceTypeEPKNS0_24DeviceGuardImplInterfaceE
    register.argtypes, register.restype = [ctypes.c_int8, ctypes.c_void_p], None
    register(CUDA, ctypes.addressof(guard))
    torch._C._ensureCUDADeviceGuardSet()
    return [c10, nothing, methods, guard]


@contextlib.contextmanager
def cuda_on_fake_tensors(low: torch.dtype) -> Iterator[None]:
    """cuda's autocast kernels, which any build has, on tensors without data."""
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", low)
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield
    torch.set_autocast_enabled("cuda", False)


def emulated_operations() -> dict[str, Any]:
    from amplint.emulation import calls, emulated

    table: dict[str, Any] = {}
    with emulated("cuda"), calls() as log:
        for op, found in sampled():
            for (index, sample), (name, low), inputs in itertools.product(
                enumerate(found), LOWS.items(), ("full", "low", "mixed")
            ):
                log.clear()
                with torch.autocast("cuda", dtype=low):
                    seen = outcome(lambda: called(op, sample, inputs, low, "cuda"))  # noqa: B023
                if log:
                    table[json.dumps([op.full_name, index, name, inputs])] = seen
    return table


def fake_operations(wanted: set[str]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    names = {json.loads(key)[0] for key in wanted}
    for op, found in sampled():
        for index, sample in enumerate(found) if op.full_name in names else ():
            for (name, low), inputs in itertools.product(LOWS.items(), ("full", "low", "mixed")):
                key = json.dumps([op.full_name, index, name, inputs])
                if key in wanted:
                    with cuda_on_fake_tensors(low):
                        table[key] = outcome(lambda: called(op, sample, inputs, low, "cuda"))  # noqa: B023
    return table


def operations() -> tuple[dict[str, Any], dict[str, Any]]:
    """Both tables, from the same samples; what the emulation replaces is replaced in the fork alone."""
    sampled()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        table = pool.apply(emulated_operations)
    kept = register_cuda_guard()
    fake = fake_operations(set(table))
    del kept
    return table, fake


class Residual(nn.Module):
    """A pre-norm block with a float32 buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.mix = nn.Linear(16, 16)
        self.register_buffer("shift", torch.ones(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mix(self.norm(x)) * self.shift


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v)


class Softmaxed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = (x @ x.transpose(1, 2)).softmax(-1)
        return torch.einsum("bij,bjd->bid", weights, x).exp().sum(-1)


class Convolved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


TOKENS, IMAGES = (2, 5, 16), (2, 3, 8, 8)
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(16, 4), TOKENS),
    "Bilinear-free MLP": (lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.Tanh()), TOKENS),
    "LayerNorm": (lambda: nn.LayerNorm(16), TOKENS),
    "GroupNorm": (lambda: nn.GroupNorm(3, 3), IMAGES),
    "RMSNorm": (lambda: nn.RMSNorm(16), TOKENS),
    "Conv1d": (lambda: nn.Conv1d(5, 4, 3), TOKENS),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 2, 2), IMAGES),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), IMAGES),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGES),
    "PReLU": (lambda: nn.PReLU(), TOKENS),
    "Softmax": (lambda: nn.Softmax(-1), TOKENS),
    "MultiheadAttention": (lambda: SelfAttention(), TOKENS),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), TOKENS),
    "TransformerDecoderLayer": (lambda: Decoder(), TOKENS),
    "GRUCell": (lambda: Cell(), TOKENS),
    "residual": (Residual, TOKENS),
    "attention": (Attention, TOKENS),
    "softmaxed": (Softmaxed, TOKENS),
    "convolved": (Convolved, IMAGES),
}


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.attention(x, x, x)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x, x)


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x[0])


def modules(device: str, region: Callable[[torch.dtype], Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for (kind, (build, shape)), (name, low), train in itertools.product(MODULES.items(), LOWS.items(), (True, False)):
        with region(low):
            torch.manual_seed(0)
            with torch.device(device):
                module = build().train(train).requires_grad_(False)
                x = torch.randn(shape)
            with torch.no_grad():
                table[json.dumps([kind, name, train])] = outcome(lambda: module(x))  # noqa: B023
    return table


def emulated_modules() -> dict[str, Any]:
    from amplint.emulation import emulated

    with emulated("cuda"):
        return modules("cuda", lambda low: torch.autocast("cuda", dtype=low))


WAYS: dict[str, Callable[[], Any]] = {
    "operations": operations,
    "modules-emulated": emulated_modules,
    "modules-fake": lambda: modules("cuda", cuda_on_fake_tensors),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()
    torch.set_num_threads(1)
    kept = register_cuda_guard() if "fake" in sys.argv[1] else []
    print(json.dumps(WAYS[sys.argv[1]]()))
