"""AMP402: training in float16 autocast in a file where no scaler is used."""

from __future__ import annotations

import pytest
from amplint_rules.amp402_scaler_sequence import ScalerSequence
from rule_harness import findings

torch = pytest.importorskip("torch")

STEP = """\
import torch
from torch.cuda import amp
from accelerate import Accelerator


def train(model, loader, optimizer, use_amp, scaled):
    for number, x in enumerate(loader):
        optimizer.zero_grad()
        with {region}:
            loss = {loss}
        {between}
        {backward}
        {step}
"""
USUAL = {
    "region": "torch.autocast('cuda', dtype=torch.float16)",
    "loss": "model(x).float().mean()",
    "between": "pass",
    "backward": "loss.backward()",
    "step": "optimizer.step()",
}


def told(**parts: str) -> bool:
    found = findings(ScalerSequence(), STEP.format(**{**USUAL, **parts}))
    return any("nothing scales this loss" in finding.message for finding in found)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"region": "torch.autocast('cuda')"},
        {"region": "amp.autocast()"},
        {"region": "torch.autocast('cuda', torch.half, enabled=use_amp)"},
        {"between": "loss = loss.mean() / 4"},
        {"between": "scaler = torch.amp.GradScaler('cuda')"},
        {"backward": "(loss / number).backward()"},
    ],
)
def test_told(parts: dict[str, str]) -> None:
    assert told(**parts)


@pytest.mark.parametrize(
    "parts",
    [
        {"region": "torch.autocast('cuda', dtype=torch.bfloat16)"},
        {"region": "torch.autocast('cpu')"},
        {"region": "torch.autocast('cuda', dtype=scaled)"},
        {"region": "torch.autocast('cuda', enabled=False)"},
        {"region": "torch.no_grad()"},
        {"between": "scaler = torch.amp.GradScaler('cuda'); scaled(scaler)"},
        {"between": "model.scaler = torch.amp.GradScaler('cuda')"},
        {"between": "loss = scaled.scale(loss)"},
        {"between": "loss = model.loss(x)"},
        {"between": "torch.set_autocast_gpu_dtype(torch.bfloat16)"},
        {"backward": "scaled(loss, optimizer)"},
        {"backward": "Accelerator().backward(loss)"},
        {"step": "pass"},
        {"step": "scaled.step()"},
    ],
)
def test_silent(parts: dict[str, str]) -> None:
    assert not told(**parts)


def test_torch_loses_gradients_that_nothing_scales() -> None:
    weight = torch.ones(4, 4, requires_grad=True)

    def gradient(scale: float) -> torch.Tensor:
        weight.grad = None
        with torch.autocast("cpu", dtype=torch.float16):
            loss = (torch.full((2, 4), 1e-4) @ weight).float().mean() * 1e-5
        (loss * scale).backward()
        assert weight.grad is not None
        return weight.grad / scale

    assert gradient(1.0).count_nonzero() == 0
    assert gradient(65536.0).count_nonzero() == 16
