"""AMP305 in functions outside modules: where autocast may be on, and where nobody needs it to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP305")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13), pedantic=True)
AUTOCAST = Options(RULES, tuple(s for s in DEFAULT_SCENARIOS if s.autocast), "cuda", (2, 13), pedantic=True)


OBJECT = """\
import torch
from torch import nn


class Normalise{base}:
    def __call__(self, points: torch.Tensor):
        points = points.float()
        return torch.linalg.svd(points @ points.mT)
"""


@pytest.mark.parametrize(("base", "certainty"), [("", Certainty.POSSIBLE), ("(nn.Module)", Certainty.PROVEN)])
def test_methods_of_other_objects_run_outside_autocast(base: str, certainty: Certainty, tmp_path: Path) -> None:
    source = Source(tmp_path / "module.py", OBJECT.format(base=base).encode())
    (finding,) = check_file(source, OPTIONS).findings
    assert finding.certainty is certainty


BESIDE = """\
import torch
from torch import nn


def align(a: torch.Tensor, b: torch.Tensor):
    return torch.linalg.svd(a.mT @ b)


class Aligned(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor):
        return {forward}

    def inspect(self, a: torch.Tensor, b: torch.Tensor):
        return {inspect}
"""


@pytest.mark.parametrize(
    ("forward", "inspect", "certainty"),
    [("align(a, b)", "a", Certainty.PROVEN), ("a", "align(a, b)", Certainty.POSSIBLE), ("a", "a", Certainty.POSSIBLE)],
)
def test_what_no_forward_leads_to_runs_outside_autocast(
    forward: str, inspect: str, certainty: Certainty, tmp_path: Path
) -> None:
    source = Source(tmp_path / "module.py", BESIDE.format(forward=forward, inspect=inspect).encode())
    (finding,) = check_file(source, AUTOCAST).findings
    assert finding.certainty is certainty
