"""Attention kernels of other libraries: inputs of several dtypes, and float32 where 16 bits are needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty, Severity
from amplint.infer.torch_model.attention_kernels import find_kernel
from amplint.plugins import load_rules
from amplint.source import Source

MODULE = """\
import torch
from torch import nn

try:
    import natten
except ImportError:
    natten = None
from flash_attn import flash_attn_func
from flash_attn.flash_attn_interface import flash_attn_varlen_qkvpacked_func
import xformers.ops as xops


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.norm = nn.LayerNorm(8)

    def forward(self, x, lengths):
        q, k, v = self.qkv(x).chunk(3, -1)
"""


def found(*lines: str) -> list[tuple[int, str]]:
    """Line of the body and scenarios of each finding, all of which must be likely warnings of AMP101."""
    source = Source(Path("/project/module.py"), (MODULE + "".join(f"        {line}\n" for line in lines)).encode())
    rules = tuple(rule for rule in load_rules() if rule.code == "AMP101")
    findings = check_file(source, Options(rules)).findings
    assert all(f.severity is Severity.WARNING and f.certainty is Certainty.LIKELY for f in findings)
    return [(f.span.start.row - MODULE.count("\n"), " ".join(f.scenarios)) for f in findings]


AUTOCAST, HALF = "autocast-fp16 autocast-bf16", "fp16 bf16 bf16-mixed-params"


@pytest.mark.parametrize(
    ("call", "scenarios"),
    [
        ("flash_attn_func(self.norm(q), k, v)", AUTOCAST),
        ("flash_attn_func(q, k, self.norm(v).to(torch.float32))", f"{AUTOCAST} {HALF}"),
        ("flash_attn_func(q.float(), k.float(), v.float())", f"{AUTOCAST} {HALF}"),
        ("flash_attn_varlen_qkvpacked_func(self.norm(self.qkv(x)), lengths, 8)", AUTOCAST),
        ("xops.memory_efficient_attention(query=self.norm(q), key=self.norm(k), value=v)", AUTOCAST),
        (
            "natten.functional.natten2dav(torch.softmax(natten.functional.natten2dqk(q, k, 7, 1), -1), v, 7, 1)",
            AUTOCAST,
        ),
    ],
)
def test_kernels_that_get_the_wrong_dtypes(call: str, scenarios: str) -> None:
    [(row, named)] = found(f"return {call}")
    assert row == 1
    assert set(named.split()) <= set(scenarios.split())


@pytest.mark.parametrize(
    "call",
    [
        "flash_attn_func(q, k, v)",
        "flash_attn_func(self.norm(q).to(v.dtype), self.norm(k).to(v.dtype), v)",
        "flash_attn_func(x, x, x)",
        "xops.memory_efficient_attention(q.float(), k.float(), v.float())",
        "natten.functional.natten2dav(torch.softmax(natten.functional.na2d_qk(q, k, 7, 1), -1).to(v.dtype), v, 7, 1)",
    ],
)
def test_kernels_that_get_the_right_dtypes(call: str) -> None:
    assert found(f"return {call}") == []


def test_kernels_are_found_wherever_their_package_keeps_them() -> None:
    assert find_kernel("flash_attn.flash_attn_interface.flash_attn_func") is find_kernel("flash_attn.flash_attn_func")
    assert find_kernel("xformers.ops.fmha.memory_efficient_attention") is not None
    assert find_kernel("another.flash_attn_func") is None


def test_probabilities_take_the_dtype_of_the_value_that_they_weight() -> None:
    lines = (
        "a = torch.softmax(natten.functional.natten2dqk(q, k, 7, 1), -1)",
        "return natten.functional.natten2dav(a, v, 7, 1)",
    )
    source = Source(Path("/project/module.py"), (MODULE + "".join(f"        {line}\n" for line in lines)).encode())
    [finding] = check_file(source, Options(tuple(rule for rule in load_rules() if rule.code == "AMP101"))).findings
    assert finding.fix is not None
    assert [edit.content for edit in finding.fix.edits] == [".to(v.dtype)"]
