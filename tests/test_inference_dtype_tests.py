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
            x, x, x, 8, 2, torch.empty([1]), torch.cat((self.q.bias, self.k.bias, self.v.bias)), None, None, False, 0.0,
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


GUARDED = """
def is_wide(x):
    return isinstance(x, torch.Tensor) and not x.is_sparse and x.dtype == torch.float32


def is_narrow(x):
    if x.dtype == torch.float32:
        return False
    return True


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        self.rows = 4

    def fits(self, x):
        return x.dtype == torch.float32 and len(x) < self.rows

    def forward(self, x: torch.Tensor, other: bool):
        table = torch.eye(4)
        {held}
        if {test}:
            x = x @ table
        return x
"""


@pytest.mark.parametrize(
    ("held", "test", "raising"),
    [
        ("pass", "other", True),
        ("pass", "is_wide(x)", False),
        ("pass", "is_wide(x) and other", False),
        ("pass", "not is_wide(x)", True),
        ("pass", "is_narrow(x)", True),
        ("pass", "not is_narrow(x)", False),
        ("pass", "self.fits(x)", False),
        ("wide = x.dtype == torch.float32 and len(x) > 2", "wide", False),
        ("wide = x.dtype == torch.float32 and len(x) > 2", "other and wide", False),
        ("wide = x.dtype == torch.float32 and len(x) > 2", "not wide", True),
        ("wide = False\n        if x.dtype == torch.float32:\n            wide = True", "wide", False),
    ],
)
def test_answers_of_tests_are_remembered(held: str, test: str, raising: bool) -> None:
    found = [c for c in conflicts(GUARDED.format(held=held, test=test)) if c.raises]
    assert bool(found) == raising


CACHED = """
class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x: torch.Tensor, cached: bool, kept: bool):
        y = x
        if {before}:
            y = torch.eye(4, device=x.device)
        if {test}:
            return y @ self.weight
        return y
"""


@pytest.mark.parametrize(
    ("before", "test", "raising"),
    [
        ("cached and not self.training", "self.training or not cached", False),
        ("cached and not self.training", "not cached or self.training", False),
        ("cached and not self.training", "not (not self.training and cached)", False),
        ("self.training or cached", "not self.training and not cached", False),
        ("cached and not self.training", "not self.training and cached", True),
        ("cached and not self.training", "self.training or cached", True),
        ("cached or self.training", "self.training and cached", True),
        ("cached and not (kept and x.is_sparse)", "kept and x.is_sparse or not cached", False),
        ("cached and not (kept and x.is_sparse)", "not (cached and not kept and x.is_sparse)", True),
    ],
)
def test_several_conditions_together_are_remembered(before: str, test: str, raising: bool) -> None:
    found = [c for c in conflicts(CACHED.format(before=before, test=test)) if c.raises]
    assert bool(found) == raising


KEPT = """
def is_wide(x):
    return x.dtype == torch.float32


class Kept(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x: torch.Tensor):
        if {test}:
            self.weight.addmm_(x.float(), x.float())
        return x
"""


@pytest.mark.parametrize(
    ("test", "raising"),
    [
        ("True", True),
        ("self.weight.dtype == torch.float32", False),
        ("is_wide(self.weight)", False),
        ("is_wide(x)", True),
    ],
)
def test_the_dtype_of_an_attribute_is_known_where_it_was_tested(test: str, raising: bool) -> None:
    found = [c for c in conflicts(KEPT.format(test=test)) if c.raises]
    assert bool(found) == raising


ADDED = """
class Added(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def fits(self, x):
        return x.dtype == torch.float32

    def forward(self, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor):
        x = self.linear(x) if len(x) > 3 else x.float()
        {held}
        out = torch.zeros(4, 4)
        if {test}:
            out.index_add_(0, rows, x)
        return out
"""


@pytest.mark.parametrize(
    ("held", "test", "raising"),
    [
        ("wide = len(x) > 2", "wide", True),
        ("wide = x.dtype == torch.float32 and len(x) > 2", "wide", False),
        ("wide = x.dtype == torch.float32 and len(x) > 2; x = self.linear(x)", "wide", True),
        ("wide = x.dtype == torch.float32 or len(x) > 2", "wide", True),
        ("wide = y.dtype == torch.float32 and len(x) > 2", "wide", True),
        ("pass", "self.fits(x)", False),
        ("pass", "self.fits(y)", True),
    ],
)
def test_an_answer_holds_until_what_was_tested_changes(held: str, test: str, raising: bool) -> None:
    found = [c for c in conflicts(ADDED.format(held=held, test=test)) if c.raises and "autocast-fp16" in c.scenarios]
    assert bool(found) == raising


AROUND = """
class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, flag: bool):
        b = self.linear(x)
        if flag:
            b = b.float()
        for _ in range(2):
            if {test}:
                x = x + 1
            else:
                x = self.linear(b)
                b = {kept}
        return x
"""


@pytest.mark.parametrize(("test", "kept", "raising"), [("flag", "b", False), ("flag", "b.float()", True)])
def test_another_way_round_a_loop_finds_what_the_one_before_left(test: str, kept: str, raising: bool) -> None:
    found = [c for c in conflicts(AROUND.format(test=test, kept=kept)) if c.raises and "fp16" in c.scenarios]
    assert bool(found) == raising
