"""Behind complex operands of two dtypes nothing is reached: torch raises there, as of floating ones; nor behind a
product of complex32, which has no kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import find_scenario
from amplint.infer.torch_model.complex_products import lacks_complex_half
from amplint.plugins import load_rules
from amplint.source import Source

CODE = """\
import torch
from torch import nn


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 4, dtype={dtype}))
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        y = torch.fft.rfft(self.inner(x))
        mixed = torch.einsum("bi,io->bo", y, self.weight)
        return self.inner(torch.ones(2, 4, device=x.device)), mixed
"""
RULES = tuple(rule for rule in load_rules() if rule.code == "AMP103")


@pytest.mark.parametrize(
    ("dtype", "scenario", "expected"),
    [
        ("torch.cfloat", "fp16", ["fails-before"]),
        ("torch.cfloat", "bf16", []),
        ("torch.complex32", "fp16", ["fails-before"]),
        ("torch.float32", "fp16", ["fails-before"]),
        ("torch.float32", "bf16", []),
    ],
)
def test_what_stands_behind_them_is_not_reached(dtype: str, scenario: str, expected: list[str]) -> None:
    """A transform of float16 is complex32, one of bfloat16 complex64; to convert a module leaves complex weights."""
    chosen = find_scenario(scenario)
    assert chosen is not None
    source = Source(Path("/project/net.py"), CODE.format(dtype=dtype).encode())
    options = Options(RULES, (chosen,), "cuda", (2, 15), pedantic=True)
    (finding,) = check_file(source, options).findings
    assert [held.doubt.name for held in finding.doubts] == expected


def test_torch_wants_one_dtype_of_complex_operands() -> None:
    single, double = torch.zeros(2, 2, dtype=torch.complex64), torch.zeros(2, 2, dtype=torch.complex128)
    for product in (torch.mm, torch.matmul, lambda a, b: torch.einsum("bi,io->bo", a, b)):
        with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
            product(single, double)


def test_torch_has_no_product_of_complex32() -> None:
    halves = torch.zeros(2, 2, dtype=torch.complex64).to(torch.complex32)
    for product in (torch.mm, torch.matmul, lambda a, b: torch.einsum("bi,io->bo", a, b)):
        with pytest.raises(RuntimeError, match="not implemented for 'ComplexHalf'"):
            product(halves, halves)


def test_a_conversion_leaves_complex_weights() -> None:
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
    assert module.half().weight.dtype is torch.complex64


HALF = """\
import torch


def spectrum(x: torch.Tensor, weight: torch.Tensor):
    y = torch.fft.rfft(torch.mm(x, weight))
    return torch.einsum({given})
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [("'bi,oi->bo', y, y", 1), ("'bi,bi->bi', y, y", 0), ("'bi->b', y", 0), ("'bi->ib', y", 0)],
)
def test_a_sum_of_one_operand_has_a_kernel(given: str, expected: int) -> None:
    assert not lacks_complex_half("torch.sum", {}, "cuda")
    chosen = find_scenario("autocast-fp16")
    assert chosen is not None
    rules = tuple(rule for rule in load_rules() if rule.code == "AMP305")
    source = Source(Path("/project/net.py"), HALF.format(given=given).encode())
    options = Options(rules, (chosen,), "cuda", (2, 13), pedantic=True)
    assert len([f for f in check_file(source, options).findings if "complex32" in f.message]) == expected
