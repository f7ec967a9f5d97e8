"""Batch norm with running statistics in a dtype of their own, emulated, against what a GPU did (H100, torch 2.11)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conftest import amplint_in
from torch_process import with_torch

if TYPE_CHECKING:
    from pathlib import Path

RECORD = """\
training float32 none bfff
training float32 float32 b---
training float32 float16 ----
training float32 bfloat16 ----
training float32 float64 ----
training float16 none bbff
training float16 float32 b---
training float16 float16 fbff
training float16 bfloat16 ----
training float16 float64 ----
training bfloat16 none bfbf
training bfloat16 float32 bfff
training bfloat16 float16 ----
training bfloat16 bfloat16 ffbf
training bfloat16 float64 ----
training float64 none fffb
training float64 float32 ----
training float64 float16 ----
training float64 bfloat16 ----
training float64 float64 ---b
evaluating float32 none bbbb
evaluating float32 float32 b---
evaluating float32 float16 ----
evaluating float32 bfloat16 ----
evaluating float32 float64 ----
evaluating float16 none bbbb
evaluating float16 float32 b---
evaluating float16 float16 fbff
evaluating float16 bfloat16 ----
evaluating float16 float64 ----
evaluating bfloat16 none bbbb
evaluating bfloat16 float32 bfff
evaluating bfloat16 float16 ----
evaluating bfloat16 bfloat16 ffbf
evaluating bfloat16 float64 ----
evaluating float64 none bbbb
evaluating float64 float32 ----
evaluating float64 float16 ----
evaluating float64 bfloat16 ----
evaluating float64 float64 ---b
"""
"""Mode, input, weight; then for statistics in float32, float16, bfloat16, float64: refused (-), run forward alone (f),
or both ways (b). Every result had the input's dtype."""

PROGRAM = """
import sys
import torch
from torch.nn import functional
from amplint.emulation.context import emulated

NAMES = ("float32", "float16", "bfloat16", "float64")


def called(mode, value, weight, statistics):
    x = torch.randn(4, 3, 5, 5, device="cuda").to(getattr(torch, value)).requires_grad_()
    parameters = None if weight == "none" else torch.ones(3, dtype=getattr(torch, weight), requires_grad=True)
    mean = torch.zeros(3, dtype=getattr(torch, statistics))
    variance = torch.ones_like(mean)
    try:
        y = functional.batch_norm(x, mean, variance, parameters, parameters, training=mode == "training")
        assert y.dtype == x.dtype and mean.any() == (mode == "training")
    except RuntimeError:
        return "-"
    try:
        y.float().sum().backward()
    except RuntimeError:
        return "f"
    return "b"


with emulated("cuda"):
    for line in sys.stdin:
        mode, value, weight, _ = line.split()
        print(mode, value, weight, "".join(called(mode, value, weight, name) for name in NAMES))
"""


def test_the_emulation_does_as_the_gpu_did() -> None:
    done = with_torch(PROGRAM, given=RECORD)
    assert done.stdout == RECORD


NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(x)


def amplint_example():
    return Net(), (torch.randn(4, 8),), {}
"""


def test_parameters_alone_in_bfloat16_fail_in_the_backward_pass(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    done = amplint_in(tmp_path, "verify", "net.py", "--scenario", "fsdp-bf16", "--output-format", "json")
    rows = {row["mode"]: row for row in json.loads(done.stdout)}
    assert {mode: row["verdict"] for mode, row in rows.items()} == {
        "train": "confirmed",
        "eval": "confirmed",
        "eval-no-grad": "clean",
    }
    assert rows["train"]["location"] is None
    assert "running_mean to have type BFloat16 but got Float" in rows["train"]["error"]
