"""``assert_autocast_safe`` for what lies on a GPU that this process has used. Skipped where torch sees none."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from amplint.testing import assert_autocast_safe

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS = """
import torch
from torch import nn


class Safe(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8, device="cuda")
        self.tied = self.proj
        self.masks = [torch.ones(4, 1, device="cuda")]

    def forward(self, x):
        return self.tied(x) * self.masks[0]


class Unsafe(Safe):
    def forward(self, x):
        return torch.zeros(4, 8).index_add_(0, torch.arange(4), self.proj(x))


def example():
    return Unsafe(), (torch.randn(4, 8, device="cuda"),), {}
"""
PROGRAM = """
import sys

import torch

import blocks
from amplint.testing import assert_autocast_safe


def main():
    if not torch.cuda.is_available():
        print("no GPU")
        return
    x = torch.randn(4, 8, device="cuda", requires_grad=True)
    module = blocks.Safe()
    out = module(x)
    if "backward" in sys.argv:
        out.sum().backward()
    assert_autocast_safe(module, x)
    print("safe", next(module.parameters()).device.type)
    for kind in (blocks.Unsafe, blocks.example):
        try:
            if kind is blocks.example:
                assert_autocast_safe(example=kind)
            else:
                assert_autocast_safe(kind(), x)
        except AssertionError as error:
            print(" ".join(str(error).splitlines()[:2]))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("backward", [(), ("backward",)])
def test_module_and_inputs_on_a_gpu(tmp_path: Path, backward: tuple[str, ...]) -> None:
    (tmp_path / "blocks.py").write_text(BLOCKS)
    (tmp_path / "program.py").write_text(PROGRAM)
    seen = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    done = subprocess.run(
        [sys.executable, "program.py", *backward],
        cwd=tmp_path,
        env=seen,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if done.stdout == "no GPU\n":
        pytest.skip("torch sees no GPU")
    safe, module, example = done.stdout.splitlines()
    assert safe == "safe cuda"
    for line in (module, example):
        assert all(part in line for part in ("autocast-fp16", "index_add_", "blocks.py:19", "[AMP105]"))


class _OnMeta(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, device="meta"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def test_a_module_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="meta"):
        assert_autocast_safe(_OnMeta(), torch.ones(2))
