"""AMP105: how sure an index write is that goes wrong for what a caller is assumed to pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP105")


EXPERTS = """\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, index: torch.LongTensor):
        out = torch.zeros_like({like})
        rows = self.proj(x[index])
        out.index_add_(0, index, rows * rows.softmax(-1))
        return out
"""


@pytest.mark.parametrize(("like", "certainty"), [("x", Certainty.POSSIBLE), ("self.proj(x)", Certainty.PROVEN)])
def test_what_autocast_widens_mostly_meets_a_stream_that_is_wide(like: str, certainty: Certainty) -> None:
    source = Source(Path("/project/experts.py"), EXPERTS.format(like=like).encode())
    result = check_file(source, Options(RULES, DEFAULT_SCENARIOS, pedantic=True))
    assert [one.certainty for one in result.findings] == [certainty]
