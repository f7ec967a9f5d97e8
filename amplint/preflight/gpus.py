"""GPU models: what they are called, and what they compute with."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from amplint.config import UsageError
from amplint.frozen import dataclass

Capability = tuple[int, int]
"""CUDA compute capability: major and minor."""

TENSOR_CORES, BF16_AND_TF32, FP8 = (7, 0), (8, 0), (8, 9)
"""The first compute capabilities with float16 tensor cores, bfloat16 and TF32 arithmetic, and float8 matrix products.

``torch.cuda.is_bf16_supported(including_emulation=False)``, ``torch.cuda.is_tf32_supported`` and
https://github.com/NVIDIA/TransformerEngine/issues/1159.
"""

_VENDORS = ("nvidia", "amd", "geforce", "tesla", "quadro", "instinct", "radeon")
_VARIANT = re.compile(
    r"\d+gb|pcie|sxm\d?|nvl|hbm\d\w?|generation|laptop|mobile|gpu|max|q|super|workstation|server|edition|d"
)
"""Words that name memory, form or board of a model of the same compute capability."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU, seen or named. ``capability`` is None for AMD's, whose ``architecture`` is a gfx name."""

    name: str
    vendor: str
    capability: Capability | None
    architecture: str | None = None
    has_tensor_cores: bool = True
    index: int | None = None
    uuid: str | None = None

    @property
    def bf16(self) -> str | None:
        """``native``, ``emulated`` (torch computes it in software), or None where unknown."""
        if self.vendor == "amd":
            return "native"
        return None if self.capability is None else "native" if self.capability >= BF16_AND_TF32 else "emulated"

    @property
    def fp16_tensor_cores(self) -> bool | None:
        if self.capability is None:
            return None
        return self.capability >= TENSOR_CORES and self.has_tensor_cores

    @property
    def fp8(self) -> bool | None:
        return None if self.capability is None else self.capability >= FP8

    def __str__(self) -> str:
        if self.capability is None:
            return f"{self.name} ({self.architecture})" if self.architecture else self.name
        return f"{self.name} (compute capability {dotted(self.capability)})"


def dotted(capability: Capability) -> str:
    """``8.6``."""
    return f"{capability[0]}.{capability[1]}"


def parse_capability(text: str) -> Capability:
    """``8.6`` as (8, 6). Raises ValueError."""
    major, _, minor = text.strip().partition(".")
    return int(major), int(minor)


def find_gpu(text: str) -> Gpu:
    """The model of that name, however its vendor, memory or form are written. Raises UsageError with the nearest."""
    known = _models()
    gpu = known.get(_key(text))
    if gpu is not None:
        return gpu
    key = _key(text)
    names = {_key(name): model.name for name, model in _named().items()}
    longer = sorted((known for known in names if len(key) > 2 and key in known), key=len)
    near = list(dict.fromkeys(names[match] for match in (*longer, *get_close_matches(key, names, n=3, cutoff=0.5))))
    hint = f" (did you mean {' or '.join(repr(name) for name in near[:3])}?)" if near else ""
    raise UsageError(f"unknown GPU '{text}'{hint}")


def model_of(name: str) -> Gpu | None:
    """The model that a driver reports under that name, or None."""
    return _models().get(_key(name))


@cache
def _named() -> dict[str, Gpu]:
    """Every name and alias of the data file."""
    document = json.loads(files("amplint.preflight").joinpath("gpus.json").read_text(encoding="utf-8"))
    found = {}
    for row in document["gpus"]:
        gpu = _gpu(row)
        for name in (gpu.name, *row.get("aliases", ())):
            found[name] = gpu
    return found


@cache
def _models() -> dict[str, Gpu]:
    found: dict[str, Gpu] = {}
    for name, gpu in _named().items():
        found[_key(name)] = gpu
        if name.startswith("GeForce "):
            found.setdefault(_key(name.split(maxsplit=2)[2]), gpu)
    return found


def _gpu(row: dict[str, Any]) -> Gpu:
    capability = row["capability"]
    return Gpu(
        name=row["name"],
        vendor=row["vendor"],
        capability=parse_capability(capability) if capability else None,
        architecture=row["architecture"],
        has_tensor_cores=row.get("tensor_cores", True),
    )


def _key(name: str) -> str:
    """What tells models apart: ``NVIDIA A100-SXM4-80GB`` is ``a100``, and ``Quadro RTX 6000`` is no ``RTX 6000``."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"\((tm|r)\)|(?<=\d)(?=ti\b)", " ", name.casefold()))
    quadro_rtx = "quadro" in words and "rtx" in words
    kept = [word for word in words if word not in _VENDORS and not _VARIANT.fullmatch(word)]
    return ("quadro" if quadro_rtx else "") + "".join(kept)
