"""AMP204 behind a forward pass that raises."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

WEIGHTED = """\
import torch


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, values):
        largest = torch.full((*scores.shape[:-1], 1), -10.0, device=scores.device)
        weights = torch.exp(scores - torch.maximum(scores.amax(-1, keepdim=True), largest))
        result = torch.zeros_like(values)
        for part in range(2):
            result = result + torch.einsum("ij,jd->id", {weights}, values)
        ctx.save_for_backward(weights, values)
        return result.to(values.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        weights, values = ctx.saved_tensors
        return grad_output @ values.t(), torch.einsum("ij,id->jd", weights, grad_output)
"""
RULES = tuple(rule for rule in load_rules() if rule.code == "AMP204")
HALF = tuple(scenario for scenario in DEFAULT_SCENARIOS if scenario.autocast is None)


def certainty(weights: str) -> str:
    source = Source(Path("/project/weighted.py"), WEIGHTED.format(weights=weights).encode())
    (finding,) = check_file(source, Options(RULES, HALF, pedantic=True)).findings
    return finding.certainty


@pytest.mark.parametrize(
    ("weights", "passes", "expected"),
    [("weights", "forward", "possible"), ("weights.to(values)", "backward", "likely")],
)
def test_forward_raises_before_backward(weights: str, passes: str, expected: str) -> None:
    names: dict[str, type[torch.autograd.Function]] = {}
    exec(WEIGHTED.format(weights=weights), names)
    scores = torch.zeros(4, 4, dtype=torch.bfloat16, requires_grad=True)
    values = torch.zeros(4, 4, dtype=torch.bfloat16, requires_grad=True)
    if passes == "forward":
        with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
            names["Weighted"].apply(scores, values)
    else:
        result = names["Weighted"].apply(scores, values)
        with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
            result.sum().backward()
    assert certainty(weights) == expected
