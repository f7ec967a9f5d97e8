"""Tests of dtypes in the source: what was found equal is the same from there on, and kinds of dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amplint.claims.conflicts import conflicts as conflicts_of
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.state.facts import Kind
from amplint.source import Source

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict

HEADER = """\
import torch
from torch import nn
"""


def conflicts(code: str) -> tuple[Conflict, ...]:
    source = Source(Path("/project/module.py"), (HEADER + code).encode())
    return conflicts_of(analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13)))


ALIGNED = """
class Accumulated(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("total", torch.zeros(8, 8))

    def forward(self, x: torch.Tensor, exactly: bool):
        y = self.linear(x)
        if exactly:
            y = y.float()
        {align}
        out = x.new_zeros(8, 8, dtype=y.dtype)
        return out.addmm_(y, x)
"""


@pytest.mark.parametrize(
    ("align", "raising"),
    [
        ("pass", True),
        ("if x.dtype != y.dtype:\n            x = x.to(y.dtype)", False),
        ("if y.dtype != x.dtype:\n            x = x.to(y.dtype)", False),
        ("if not x.dtype == y.dtype:\n            x = x.to(y.dtype)", False),
        ("if x.dtype == y.dtype:\n            pass\n        else:\n            x = x.to(y.dtype)", False),
        ("assert x.dtype == y.dtype", False),
        ("if x.dtype is y.dtype:\n            x = x.to(y.dtype)", True),
    ],
)
def test_dtypes_that_were_compared_are_the_same_where_they_were_found_equal(align: str, raising: bool) -> None:
    assert bool([c for c in conflicts(ALIGNED.format(align=align)) if c.raises]) == raising


KIND = """
class Scored(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.table = nn.Parameter(torch.zeros(8, 8))

    def forward(self, x: torch.Tensor, picked: torch.Tensor):
        rows = self.table[picked]
        {given}
        if {test}:
            given = given.float()
        return self.linear(given) + rows
"""


@pytest.mark.parametrize(
    ("given", "test", "raising"),
    [
        ("given = x", "not x.is_floating_point()", False),
        ("given = x", "not torch.is_floating_point(x)", False),
        ("given = x", "x.dtype.is_complex", False),
        ("given = x", "x.is_floating_point()", True),
        ("given = x", "x.dtype.is_floating_point", True),
        ("given = picked", "not picked.is_floating_point()", True),
        ("given = x", "self.unknown()", True),
    ],
)
def test_kinds_of_dtypes_decide_branches(given: str, test: str, raising: bool) -> None:
    assert bool([c for c in conflicts(KIND.format(given=given, test=test)) if c.raises]) == raising


def test_the_upcast_of_what_a_test_left_integers_is_no_upcast_of_activations() -> None:
    code = """
from elsewhere import prepared


class Scored(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(8, 8))

    def forward(self, x):
        x = prepared(x)
        if {test}:
            x = x.float()
        return torch.mm(x, x)
"""
    undone = [c for c in conflicts(code.format(test="not x.is_floating_point()")) if c.kind is Kind.UNDONE_UPCAST]
    assert undone == []
    assert [c for c in conflicts(code.format(test="x.is_cuda")) if c.kind is Kind.UNDONE_UPCAST]


def test_an_operand_that_a_flag_makes_unused_does_not_disagree() -> None:
    code = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor):
        return nn.functional.multi_head_attention_forward(
            x, x, x, 8, 2, torch.empty([0]), torch.cat((self.q.bias, self.k.bias, self.v.bias)), None, None, False, 0.0,
            self.o.weight, self.o.bias, {flag}q_proj_weight=self.q.weight, k_proj_weight=self.k.weight,
            v_proj_weight=self.v.weight,
        )
"""
    assert not [c for c in conflicts(code.format(flag="use_separate_proj_weight=True, ")) if c.raises]
    assert [c for c in conflicts(code.format(flag="")) if c.raises]


REFUSING = """
class Picked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, other: torch.Tensor):
        {refusal}
        return self.linear(x.float())
"""


@pytest.mark.parametrize(
    ("refusal", "behind"),
    [
        ("pass", True),
        ("if other.dtype != torch.long:\n            raise TypeError(other.dtype)", True),
        ("if not other.dtype == torch.long:\n            raise TypeError(other.dtype)", True),
        ("if other.dtype not in (torch.int32, torch.int64):\n            raise TypeError(other.dtype)", True),
        ("if other.dim() == 1 and other.dtype != torch.bool:\n            raise TypeError(other.dtype)", True),
        ("if other.dtype == torch.long:\n            pass\n        else:\n            raise TypeError", True),
        ("assert other.dtype == torch.long", True),
        ("if x.dtype != torch.float32:\n            raise TypeError(x.dtype)", False),
        ("other = torch.zeros(8)\n        if other.dtype != torch.long:\n            raise TypeError", False),
    ],
)
def test_code_that_refuses_what_scenarios_pass_is_passed_something_else(refusal: str, behind: bool) -> None:
    found = [c for c in conflicts(REFUSING.format(refusal=refusal)) if c.raises and "fp16" in c.scenarios]
    assert bool(found) == behind
