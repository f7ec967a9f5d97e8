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

PAD = """
    def pad(self, rows: torch.Tensor, index: torch.Tensor):
        out = torch.zeros(16, 8, device=rows.device)
        out[index.long()] = rows[:, 1:]
        return out
"""
RANK = """
    def rank(self, scores: torch.Tensor, index: torch.Tensor):
        ranks = torch.zeros_like(scores)
        ranks[index.long()] = torch.arange(8).float()
        return ranks
"""
PROCESS = """
    def process(self, text: torch.Tensor, image: torch.Tensor, mask: torch.Tensor):
        both = torch.bmm(text, image)
        text[mask > 0] = both[mask > 0]
        return text
"""


@pytest.mark.parametrize(
    ("base", "method", "certainty"),
    [
        ("nn.Module", PAD, Certainty.LIKELY),
        ("", PAD, Certainty.POSSIBLE),
        ("abc.ABC", PAD, Certainty.POSSIBLE),
        ("elsewhere.Base", PAD, Certainty.LIKELY),
        ("", RANK, Certainty.LIKELY),
        ("nn.Module", PROCESS, Certainty.LIKELY),
        ("", PROCESS, Certainty.POSSIBLE),
    ],
)
def test_what_a_caller_is_assumed_to_pass_to_what_is_no_module_is_only_possible(
    base: str, method: str, certainty: Certainty
) -> None:
    source = f"import abc\nimport elsewhere\nimport torch\nfrom torch import nn\n\nclass Work({base}):{method}"
    result = check_file(
        Source(Path("/project/work.py"), source.encode()), Options(RULES, DEFAULT_SCENARIOS, pedantic=True)
    )
    assert [one.certainty for one in result.findings] == [certainty]


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
