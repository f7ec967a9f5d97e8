"""Whether a CPU kernel that lacks a dtype says anything about the device.

An emulated run fails where the CPU has no kernel for a dtype.  ``low_precision_support.json`` says whether the device
has one: what torch's test declarations give to cuda, joined with the errors that CPU kernels raise (its generator
explains how).  What stops something that is declared to run on cuda is the CPU's own gap.

A norm whose parameters are narrower than its input ("mixed dtype (CPU): ...") is not about support, whatever its text
says: cuda's kernels read the parameters as the input's type and raise as well (``gamma.data_ptr<T>()`` in
aten/src/ATen/native/cuda/layer_norm_kernel.cu; the check itself is in native_group_norm, which both devices share).
"""

from __future__ import annotations

import json
import re
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import torch

import amplint.data
from amplint.data.newer import changed_names, entry_in, refusal_key
from amplint.emulation.policy import release

_LOW = {"Half": "float16", "BFloat16": "bfloat16", "ComplexHalf": "float16"}
_NAMED = re.compile(r"(?:CPU)?(?:c10::)?(ComplexHalf|BFloat16|Half)(?:Type)?")
_SHAPE = re.compile(r"\[[\d, ]*\]")
_NUMBER = re.compile(r"\b\d+\b")
_KERNEL = re.compile(r'"([^"]+)" not implemented for')
SUPPORT = re.compile(
    r"not implemented for '?<dtype>|Unsupported dtype <dtype>|doesn't support tensors of type: <dtype>"
    r"|Low precision dtypes not supported|not supported for <dtype>|not support(?:ed)? <dtype>"
)
#: Kernels that the CPU lacks in every dtype, and attention backends, of which it has only some.
_ABSENT = re.compile(
    r"Could not run '[^']+' with arguments from the '\w*CPU\w*' backend"
    r"|No viable backend for scaled_dot_product_attention|No available kernel"
)


class Gap(Enum):
    """Who lacks the support that an error is about."""

    CPU_ONLY = "the CPU's kernel lacks it; nothing says that the device's does"
    DEVICE_TOO = "the device lacks it as well"


def template(text: str) -> str:
    """The first line of an error text without what varies: dtypes, shapes, numbers."""
    line = text.strip().partition("\n")[0]
    return _NUMBER.sub("<n>", _SHAPE.sub("[]", _NAMED.sub("<dtype>", line)))


_SUPPORT_TABLE, _REFUSALS = "low_precision_support", "refusals"


@cache
def _table() -> dict[str, Any]:
    """What torch declares and its CPU kernels say, in the release that is installed."""
    measured = json.loads(Path(amplint.data.__file__).with_name(f"{_SUPPORT_TABLE}.json").read_text())
    installed = release(torch.__version__)
    ops, refused = measured["ops"], {refusal_key(row): row for row in measured[_REFUSALS]}
    for name in changed_names(_SUPPORT_TABLE):
        ops[name] = entry_in(installed, _SUPPORT_TABLE, name, ops.get(name)) or {}
    for key in changed_names(_REFUSALS):
        dtype, op, text = json.loads(key)
        said = entry_in(installed, _REFUSALS, key, refused.pop(key, None))
        if said is not None:
            refused[key] = {**said, "dtype": dtype, "op": op, "text": text}
    return {"ops": ops, _REFUSALS: list(refused.values())}


@cache
def _declared() -> dict[str, Any]:
    """What operations lack, by ATen's spelling of their names."""
    return {name.removeprefix("nn.functional.").replace(".", "_"): lacks for name, lacks in _table()["ops"].items()}


def gap(error: BaseException | str, op: str | None = None, device: str = "cuda") -> Gap | None:
    """Classify an error of an emulated run.

    :param error: the error, or its text.
    :param op: the ATen operation that raised it, where known: ``aten.linalg_qr.default``.
    :param device: the device that is emulated; torch declares support for cuda only, so that nothing is ever said of
        the others than ``CPU_ONLY``.
    :returns: None where the error is not about missing support.
    """
    text = str(error)
    if _ABSENT.search(text):
        return Gap.CPU_ONLY
    known = [row for row in _table()["refusals"] if row["text"] == template(text)]
    if not known and not SUPPORT.search(template(text)):
        return None
    if device != "cuda":
        return Gap.CPU_ONLY
    kernels = _KERNEL.findall(text)
    if any(kernel.endswith("_cuda") for kernel in kernels):
        return Gap.DEVICE_TOO
    if "'ComplexHalf'" in text and any(_of_kernel(kernel) in _complex_half() for kernel in kernels):
        return Gap.DEVICE_TOO
    named = [_LOW[name] for name in _NAMED.findall(text)]
    dtypes = {named[-1]} if named else set(_LOW.values())
    rows = _evidence(known, op, dtypes)
    if rows:
        return Gap.CPU_ONLY if any("has" in row for row in rows) else Gap.DEVICE_TOO
    names = [_base(op)] if op is not None else [_of_kernel(name) for name in _KERNEL.findall(text)]
    return Gap.DEVICE_TOO if names and all(_lacks(name, dtypes) for name in names) else Gap.CPU_ONLY


@cache
def _complex_half() -> frozenset[str]:
    """Products that cuda is declared to lack in complex32."""
    return frozenset(name.rpartition(".")[2] for name in amplint.data.read_table("complex_half.json")["ops"])


def _evidence(known: list[dict[str, Any]], op: str | None, dtypes: set[str]) -> list[dict[str, Any]]:
    """Measured refusals: by this operation with this text, else by it with any, else with this text by any."""
    own = [row for row in _table()["refusals"] if op is not None and row["op"] is not None and _same(row["op"], op)]
    for rows in ([row for row in own if row in known], own, known):
        found = [row for row in rows if row["dtype"] in dtypes]
        if found:
            return found
    return []


def _base(op: str) -> str:
    """``linalg_svd`` for ``aten._linalg_svd.default``; overloads share kernels."""
    return op.removeprefix("aten::").removeprefix("aten.").partition(".")[0].strip("_")


def _same(one: str, other: str) -> bool:
    return _base(one) == _base(other)


def _of_kernel(kernel: str) -> str:
    """The operation with the longest name that the kernel's begins with: ``addmm`` for ``addmm_impl_cpu_``."""
    parts = kernel.lower().strip("_").split("_")
    for length in range(len(parts), 0, -1):
        name = "_".join(parts[:length])
        for candidate in (name, f"linalg_{name}"):
            if candidate in _declared():
                return candidate
    return kernel


def _lacks(name: str, dtypes: set[str]) -> bool:
    """Whether cuda is declared to lack the operation, or its backward pass, in one of the dtypes."""
    backward = name.endswith("_backward")
    lacking = _declared().get(name.removesuffix("_backward"), {}).get("cuda", {})
    return any(dtype in lacking.get("backward" if backward else "forward", []) for dtype in dtypes)
