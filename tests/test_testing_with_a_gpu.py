"""``assert_autocast_safe`` in a process whose autograd has started a thread for a GPU: no fork runs a backward pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BLOCKS = """
import torch
from torch import nn


class Safe(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return self.proj(x)


class Unsafe(Safe):
    def forward(self, x):
        return torch.zeros(4, 8).index_add_(0, torch.arange(4), self.proj(x))


def example():
    return Unsafe(), (torch.randn(4, 8),), {}
"""
PROGRAM = """
import torch
from torch import nn

import blocks
from pretended_gpu import pretend

from amplint.testing import assert_autocast_safe


def main():
    if not pretend():
        print("no pretended GPU")
        return
    torch.ones(1, requires_grad=True).sum().backward()
    module, x = blocks.Safe(), torch.randn(4, 8, requires_grad=True)
    module(x).sum().backward()
    assert_autocast_safe(module, x)
    print("safe")
    for kind in (blocks.Unsafe, blocks.example):
        try:
            if kind is blocks.example:
                assert_autocast_safe(example=kind)
            else:
                assert_autocast_safe(kind(), x)
        except AssertionError as error:
            print(str(error).splitlines()[1])
    class Inner(blocks.Safe):
        pass
    try:
        assert_autocast_safe(Inner(), x)
    except RuntimeError as error:
        print(error)


if __name__ == "__main__":
    main()
"""


def test_it_runs_in_a_new_process_there(tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(BLOCKS)
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if done.stdout == "no pretended GPU\n":
        pytest.skip("this torch takes no pretended GPU")
    safe, module, example, local = done.stdout.splitlines()
    assert safe == "safe"
    for line in (module, example):
        assert all(part in line for part in ("autocast-fp16", "index_add_", "blocks.py:17", "[AMP105]"))
    assert all(part in local for part in ("cannot be pickled", "CUDA_VISIBLE_DEVICES="))
