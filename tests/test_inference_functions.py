"""What the inference knows of the operands of an autograd Function: by the modules that apply it."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.claims.conflicts import conflicts
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.state.facts import Kind
from amplint.source import Source

APPLIED = """
import torch
from torch import nn


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, value):
        weights = torch.exp(scores)
        ctx.save_for_backward(weights, value)
        return weights @ value

    @staticmethod
    def backward(ctx, grad):
        weights, value = ctx.saved_tensors
        grad_weights = grad @ value.mT
        return grad_weights * weights, weights.mT @ grad


class Attention(nn.Module):
    def __init__(self, pad: bool):
        super().__init__()
        self.query, self.value = nn.Linear(8, 8), nn.Linear(8, 8)
        self.pad = pad

    def forward(self, x: torch.Tensor):
        query, value = self.query(x), self.value(x)
        {between}
        return Weighted.apply(query @ query.mT, value)
"""
OPERANDS_DIFFER, WEIGHTS_DIFFER = "grad @ value.mT", "weights.mT @ grad"


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("pass", {WEIGHTS_DIFFER}),
        ("value = value.float()", {OPERANDS_DIFFER, WEIGHTS_DIFFER}),
        ("if self.pad: value = torch.cat([value, torch.zeros(2, 1, 8)], dim=1)", {OPERANDS_DIFFER, WEIGHTS_DIFFER}),
        ("value = x", {OPERANDS_DIFFER, WEIGHTS_DIFFER}),
    ],
)
def test_the_module_that_applies_a_function_tells_what_backward_gets(between: str, told: set[str]) -> None:
    source = Source(Path("/project/module.py"), APPLIED.format(between=between).encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    found = [conflict for conflict in conflicts(facts) if conflict.kind is Kind.BACKWARD]
    assert all(conflict.standing.told for conflict in found)
    assert {source.segment(facts.span(conflict.node)) for conflict in found} == told
