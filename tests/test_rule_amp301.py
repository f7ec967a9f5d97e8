"""AMP301's safe fix: wherever the program ran before, it gives bitwise the same, in any dtype and autocast state."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.finding import Applicability, FileResult, Severity
from amplint.fix import fix_source
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP301")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
ON_CPU = replace(OPTIONS, device="cpu")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
STATES = (None, torch.float16, torch.bfloat16)
CONSTANTS = ("-1e9", "1e9", "-65505.0", "-65536", "-1e38", "-3.4e38", "torch.finfo(torch.float32).min", "LOWEST")
FILLS = (
    "scores.masked_fill(mask, {})",
    "torch.masked_fill(scores, mask, value={})",
    "scores.clone().masked_fill_(mask, {})",
    "torch.full_like(scores, {})",
    "scores.new_full((2,), {})",
    "torch.full((2, 2), {}, dtype=scores.dtype)",
    "torch.nn.functional.pad(scores, (1, 1), value={})",
    "scores.clamp(min={})",
)
MODULE = """\
import torch
from torch import nn

LOWEST = -1e9


class Attention(nn.Module):
    def forward(self, x, mask):
        scores = x @ x.mT
        return {}
"""


def module_of(text: str) -> torch.nn.Module:
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    module: torch.nn.Module = namespace["Attention"]()
    return module


def check(source: Source) -> FileResult:
    return check_file(source, ON_CPU)


def outcome(module: torch.nn.Module, *inputs: torch.Tensor) -> torch.Tensor | None:
    """What a program gives; None where it raises."""
    try:
        result: torch.Tensor = module(*inputs)
        return result
    except RuntimeError:
        return None


@pytest.mark.parametrize("fill", FILLS)
def test_safe_fixes_change_nothing_that_ran(fill: str, tmp_path: Path) -> None:
    mask = torch.tensor([[True, False], [True, True]])
    cured = 0
    for constant in CONSTANTS:
        text = MODULE.format(fill.format(constant))
        source = Source(tmp_path / "module.py", text.encode())
        fixed = fix_source(source, check(source), Applicability.SAFE, check)
        assert fixed.fixed == 1
        before, after = module_of(text), module_of(fixed.source.text)
        for dtype in DTYPES:
            x = torch.randn(2, 2, dtype=dtype)
            for state in STATES:
                region = torch.autocast("cpu", dtype=state) if state is not None else nullcontext()
                with region:
                    old, new = outcome(before, x, mask), outcome(after, x, mask)
                assert new is not None
                cured += old is None
                assert old is None or (old.dtype == new.dtype and torch.equal(old, new))
    assert cured


@pytest.mark.parametrize(
    "bound", ["scores.clamp(max=1e9)", "scores.clip(-1e9)", "nn.functional.hardtanh(scores, -1e9, 1e9)"]
)
def test_bounds_are_refused_by_the_cpu_alone(bound: str, tmp_path: Path) -> None:
    source = Source(tmp_path / "module.py", MODULE.format(bound).encode())
    assert not check_file(source, OPTIONS).findings
    (finding,) = check(source).findings
    assert (finding.code, finding.severity) == ("AMP301", Severity.ERROR)


def test_what_a_caller_may_replace_by_infinity_is_no_safe_fix(tmp_path: Path) -> None:
    text = MODULE.replace("x, mask)", "x, mask, lowest=-1e9)").format("scores.masked_fill(mask, lowest)")
    (finding,) = check_file(Source(tmp_path / "module.py", text.encode()), OPTIONS).findings
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
