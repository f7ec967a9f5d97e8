"""AMP303: what is certain and what is merely possible, which choices count, what may be a count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP303")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
MODULE = """\
import torch
from torch import nn
from torch.nn import functional as F


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask):
        logits = self.gate(x)
        {}
"""


def reported(line: str, *, pedantic: bool = False) -> int:
    source = Source(Path("/project/module.py"), MODULE.format(line).encode())
    return len(check_file(source, replace(OPTIONS, pedantic=pedantic)).findings)


@pytest.mark.parametrize(
    "line",
    [
        "p, i = torch.topk(F.softmax(logits, dim=-1).view(-1, 4), k=2)\n        p /= p.sum()\n        return p, i",
        "best, i = logits.softmax(-1).topk(2)\n        return best / best.sum(-1, keepdim=True), i",
        "best, i = logits.softmax(-1).topk(2)\n        best = best * 2\n        y = best * x\n        return y, i",
        "p = F.softmax(logits, -1)\n        best = torch.argmax(p, 1)\n        return p * F.one_hot(best, 4)",
        "return logits * torch.rsqrt((logits - x).square().mean(-1) + 1e-3)",
        "v = logits.square().mean(-1)\n        w = v + 1e-3\n        return logits / w.sqrt()",
        "v: torch.Tensor = torch.mean(logits * logits, -1)\n        return (v + 1e-3) ** -0.5 * logits",
        "s = logits**2\n        v = s.mean(-1).clamp(min=1e-3)\n        return logits * v.pow(-0.5)",
        "return logits.sigmoid().cumsum(-1)",
        "return torch.log(1 - logits.sigmoid())",
        "return torch.exp(-torch.exp(logits))",
    ],
)
def test_certain_whatever_the_numbers(line: str) -> None:
    assert reported(line) == 1


@pytest.mark.parametrize(
    "line",
    [
        "return logits.softmax(-1) @ x",
        "return logits.softmax(-1).argmax(-1)",
        "p = logits.softmax(-1)\n        y = p @ x\n        p = x\n        return y, p.topk(2)",
        "p = logits.softmax(-1)\n        largest, _ = p.topk(2)\n        return largest",
        "return logits.softmax(-1).topk(2).values",
        "return torch.topk(logits.softmax(-1), 2)[0]",
        "p = F.softmax(logits / 0.7, dim=-1)\n        return torch.multinomial(p, 1)",
        "best, i = logits.softmax(-1).topk(2)\n        best = best.view(-1)\n        return dict(best=best, x=x[i])",
        "return logits.softmax(-1).topk(2)",
        "best, i = logits.softmax(-1).topk(2)\n        return best, i",
        "return logits.pow(2).mean(-1)",
        "return logits.pow(2).mean(-1).sqrt()",
        "return x / (logits.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt()",
        "return logits / (logits.pow(2).sum(-1, keepdim=True) + 1e-3).sqrt()",
        "return (logits - x).square().mean()",
        "return torch.exp(logits)",
        "return F.log_softmax(logits, -1)",
        "return F.logsigmoid(logits)",
    ],
)
def test_possible_where_it_depends_on_the_numbers(line: str) -> None:
    assert reported(line) == 0
    assert reported(line, pedantic=True) == 1


@pytest.mark.parametrize(
    "line",
    [
        "return mask.cumsum(-1), (mask + 1).cumsum(-1)",
        "return logits.softmax(-1, dtype=torch.float32).topk(2)",
        "return torch.log(1 - logits.float().sigmoid())",
        "return torch.log(1 - logits.sigmoid() + 1e-3)",
        "return logits.sigmoid().square().sum(-1)",
    ],
)
def test_silent(line: str) -> None:
    assert reported(line, pedantic=False) == 0


FALLBACK = """\
import torch
from torch import nn
from torch.nn import functional as F

has_own = hasattr({asked})


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        x = self.proj(x)
        if has_own:
            return F.rms_norm(x, (4,))
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)
"""


@pytest.mark.parametrize(
    ("asked", "release", "count"),
    [
        ("F, 'rms_norm'", (2, 13), 0),
        ("torch, 'rms_norm'", (2, 13), 0),
        ("torch.Tensor, 'square'", (2, 14), 0),
        ("F, 'rms_norm'", (2, 3), 1),
        ("F, 'norm_of_the_future'", (2, 13), 1),
        ("torch.mps, 'rms_norm'", (2, 13), 1),
    ],
)
def test_a_fallback_for_releases_that_lack_a_function_is_dead(asked: str, release: tuple[int, int], count: int) -> None:
    source = Source(Path("/project/norm.py"), FALLBACK.format(asked=asked).encode())
    assert len(check_file(source, replace(OPTIONS, torch_version=release)).findings) == count


def test_what_an_autograd_function_accumulates_has_the_dtype_it_is_called_with() -> None:
    code = """\
import torch


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, g):
        ctx.save_for_backward(q)
        return q * g

    @staticmethod
    def backward(ctx, grad):
        (q,) = ctx.saved_tensors
        dg = (grad * q).to(q.dtype)
        return grad, {}
"""
    for returned, count in (("dg.cumsum(-2)", 1), ("dg.float().cumsum(-2)", 0)):
        source = Source(Path("/project/gate.py"), code.format(returned).encode())
        assert len(check_file(source, OPTIONS).findings) == count


@pytest.mark.parametrize(
    ("line", "certain"),
    [
        ("grid = torch.ones(64, 64, dtype=logits.dtype); return grid.cumsum(0) / 64", 0),
        ("grid = torch.ones((64, 64), dtype=logits.dtype)[:32]; return torch.cumsum(grid, 0) - 0.5", 0),
        ("return torch.ones_like(logits).cumsum(1)", 0),
        ("return logits.sigmoid().cumsum(-1)", 1),
    ],
)
def test_running_sums_of_ones_are_exact_for_rows_of_an_image(line: str, certain: int) -> None:
    assert (reported(line), reported(line, pedantic=True)) == (certain, 1)


@pytest.mark.parametrize(("dtype", "count"), [(torch.float16, 2048), (torch.bfloat16, 256)])
def test_torch_counts_exactly(dtype: torch.dtype, count: int) -> None:
    assert torch.ones(count, dtype=dtype).cumsum(0).double().equal(torch.arange(1.0, count + 1).double())
