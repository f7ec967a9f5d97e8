"""Decorators that close autocast around a method: whatever a caller passes, its body runs without autocast alone."""

from __future__ import annotations

import pytest

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


MIX = """\
import torch
from mmcv.runner import force_fp32
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, places: torch.LongTensor):
        return self.mix(self.proj(x), self.proj(x), [self.proj(x)], places)

    {decorator}
    def mix(self, named, other, listed, places):
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
        ("@force_fp32(apply_to=('named',))", "named", False),
        ("@force_fp32(apply_to=('named',))", "other", True),
    ],
)
def test_the_arguments_that_it_names_become_float32(decorator: str, written: str, raises: bool) -> None:
    source = MIX.format(decorator=decorator, written=written)
    found = amplint.check_source(source, select=["AMP105", "AMP106"])
    assert any("autocast-fp16" in finding.scenarios for finding in found) is raises
