"""AMP302: which functions run in a module's scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP302")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
HELPER = """\
import torch
from torch import nn


def log(t, eps=1e-12):
    return torch.log(t.clamp(min=eps))


class Loss(nn.Module):
    def forward(self, batch):
        return {call}
"""


@pytest.mark.parametrize(("call", "found"), [("log(batch['shares'])", 1), ("batch['shares']", 0)])
def test_a_helper_of_a_module_runs_in_its_scenario(call: str, found: int) -> None:
    result = check_file(Source(Path("/project/loss.py"), HELPER.format(call=call).encode()), OPTIONS)
    assert not result.failures
    assert [finding.span.start.row for finding in result.findings] == [6] * found
