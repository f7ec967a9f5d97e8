"""CUDA's layer_norm and group_norm take no float32 parameters beside low precision, the CPU's do (pytorch#135969)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import find_scenario
from amplint.plugins import load_rules
from amplint.source import Source

CODE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = {norm}
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        y = self.norm(x)
        return self.inner(torch.ones(2, 4, device=x.device)), y
"""
RULES = tuple(rule for rule in load_rules() if rule.code == "AMP103")


def doubts(norm: str, scenario: str, device: str) -> list[list[str]]:
    chosen = find_scenario(scenario)
    assert chosen is not None
    source = Source(Path("/project/net.py"), CODE.format(norm=norm).encode())
    findings = check_file(source, Options(RULES, (chosen,), device, pedantic=True)).findings
    return [[held.doubt.name for held in finding.doubts] for finding in findings]


@pytest.mark.parametrize("norm", ["nn.LayerNorm(4, dtype=torch.float32)", "nn.GroupNorm(2, 4, dtype=torch.float32)"])
def test_behind_a_norm_of_two_dtypes_nothing_is_reached(norm: str) -> None:
    assert doubts(norm, "bf16-mixed-params", "cuda") == [["fails-before"]]
    assert doubts(norm, "bf16-mixed-params", "cpu") == [[]]
    assert doubts(norm, "bf16", "cuda") == [[]]


@pytest.mark.parametrize("norm", ["nn.LayerNorm(4)", "nn.BatchNorm1d(4, dtype=torch.float32)"])
def test_other_norms_are_passed(norm: str) -> None:
    assert doubts(norm, "bf16-mixed-params", "cuda") == [[]]


def test_the_cpu_takes_them() -> None:
    x, one = torch.ones(2, 4, dtype=torch.bfloat16), torch.ones(4)
    assert functional.layer_norm(x, (4,), one, one).dtype is torch.bfloat16
    assert functional.group_norm(x, 2, one, one).dtype is torch.bfloat16
