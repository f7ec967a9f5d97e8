"""Decorators that close autocast around a method: whatever a caller passes, its body runs without autocast alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import amplint

HEAD = """\
import torch
import torch.nn.functional as F
from mmcv.runner import force_fp32
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x)

    {decorator}
    def loss(self, scores, targets):
        {body}

    def share(self, score, target):
        return F.binary_cross_entropy(score.sigmoid(), target)
"""
CLOSED = ["@force_fp32()", "@force_fp32(apply_to=('scores',))", "@torch.autocast('cuda', enabled=False)"]
LOSS = "return self.share(scores[0], targets)"
IN_TURN = "return torch.stack([self.share(score, target) for score, target in zip(scores, self.chosen(targets))])"


def rows(decorator: str, body: str, code: str) -> set[int]:
    source = HEAD.format(decorator=decorator, body=body)
    return {finding.span.start.row for finding in amplint.check_source(source, select=[code], pedantic=True)}


@pytest.mark.parametrize("body", [LOSS, IN_TURN])
@pytest.mark.parametrize("decorator", CLOSED)
def test_what_autocast_refuses_runs_where_it_is_off(decorator: str, body: str) -> None:
    assert rows(decorator, body, "AMP304") == set()


@pytest.mark.parametrize("body", [LOSS, IN_TURN])
@pytest.mark.parametrize("decorator", ["@torch.no_grad()", "@torch.autocast('cuda')"])
def test_it_does_not_where_autocast_is_on(decorator: str, body: str) -> None:
    assert rows(decorator, body, "AMP304") == {20}


AROUND = ["{closed}", "{closed}\n    @hooks.register", "@hooks.register\n    {closed}"]
"""Where a decorator that is not understood stands beside the one that closes autocast, if any does."""


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("closed", CLOSED)
def test_other_decorators_leave_the_region(around: str, closed: str) -> None:
    assert rows(around.format(closed=closed), LOSS, "AMP304") == set()


@pytest.mark.parametrize("around", AROUND)
def test_the_body_is_judged_behind_other_decorators(around: str) -> None:
    source = HEAD.format(decorator=around.format(closed=CLOSED[-1]), body="return self.proj(scores.half())")
    assert any("autocast-fp16" in finding.scenarios for finding in amplint.check_source(source, pedantic=True))


MIX = """\
import torch
from mmcv.runner import force_fp32
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, places: torch.LongTensor):
        y = self.proj(x)
        return self.mix(y, y, [y], {{"y": y}}, places)

    {decorator}
    def mix(self, named, other, listed, mapped, places):
        kept = torch.zeros(4, 4)
        kept[places] = {written}
        return kept
"""


@pytest.mark.parametrize(
    ("decorator", "written", "raises"),
    [
        ("@torch.no_grad()", "named", True),
        ("@force_fp32()", "named", False),
        ("@torch.no_grad()", "listed[0]", True),
        ("@force_fp32()", "listed[0]", False),
        ("@torch.no_grad()", "mapped['y']", True),
        ("@force_fp32()", "mapped['y']", False),
        ("@force_fp32(apply_to=('named',))", "named", False),
        ("@force_fp32(apply_to=('named',))", "other", True),
    ],
)
def test_the_arguments_that_it_names_become_float32(decorator: str, written: str, raises: bool) -> None:
    source = MIX.format(decorator=decorator, written=written)
    found = amplint.check_source(source, select=["AMP105", "AMP106"])
    assert any("autocast-fp16" in finding.scenarios for finding in found) is raises


def test_custom_fwd_casts_what_lies_in_lists_and_dicts() -> None:
    """That torch does: the same for CPU, whose autocast casts to bfloat16."""
    seen: list[torch.dtype] = []

    class Sees(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx: object, x: torch.Tensor, listed: list[torch.Tensor], mapped: dict[str, torch.Tensor]) -> Any:
            seen.extend(y.dtype for y in (x, *listed, *mapped.values()))
            return x

    x = torch.ones(2, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        Sees.apply(x, [x], {"x": x})
    assert seen == [torch.float32] * 3
