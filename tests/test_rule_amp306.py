"""AMP306: what counts up under an exponential are frequencies, whose exponents are rounded, not positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP306")
CODE = """
import torch
from torch import nn


class Sinusoids(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("slopes", torch.ones(dim))

    def forward(self, x: torch.Tensor):
        x = self.proj(x)
        index = torch.arange(0, x.shape[1], dtype=x.dtype)
        return {returned}
"""
NUMBER = "(torch.log(torch.full((), 10000.0)) / 64)"


@pytest.mark.parametrize(
    ("returned", "certainty", "said"),
    [
        (f"torch.exp(-index * {NUMBER})", Certainty.LIKELY, "rounds the exponents of the frequencies"),
        (f"(-index * {NUMBER}).exp()", Certainty.LIKELY, "rounds the exponents of the frequencies"),
        (f"torch.sin(index * {NUMBER})", Certainty.LIKELY, "rounds positions above 256"),
        ("torch.exp(index * self.slopes.to(x.dtype))", Certainty.LIKELY, "rounds the angles or exponents"),
        ("torch.cos(index * x)", Certainty.LIKELY, "rounds the angles or exponents"),
        ("torch.outer(index, x[0]).sin()", Certainty.LIKELY, "rounds positions above 256"),
        ("torch.sin(index * torch.exp(self.slopes.to(x.dtype)))", Certainty.LIKELY, "rounds positions above 256"),
    ],
)
def test_what_counts_up(returned: str, certainty: Certainty, said: str) -> None:
    source = Source(Path("/project/sinusoids.py"), CODE.format(returned=returned).encode())
    (finding,) = check_file(source, Options(RULES)).findings
    assert finding.certainty is certainty
    assert said in finding.message


@pytest.mark.parametrize(("dtype", "count"), [("torch.float32", 0), ("torch.float16", 1)])
def test_a_buffer_may_be_kept_from_conversion(dtype: str, count: int) -> None:
    code = f"""\
import torch
from torch import nn


class Basis(nn.Module):
    def __init__(self, order):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.register_buffer("rates", torch.arange(1, order, dtype={dtype}))

    def forward(self, x: torch.Tensor):
        return torch.outer(self.proj(x), self.rates).sin()
"""
    found = check_file(Source(Path("/project/basis.py"), code.encode()), Options(RULES)).findings
    assert len([finding for finding in found if "fp16" in finding.scenarios]) == count
