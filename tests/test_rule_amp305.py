"""AMP305 in functions outside modules: where autocast may be on, and where nobody needs it to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP305")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13), pedantic=True)
FACTORS = """\
import torch
from torch import nn


def factors({parameters}):
    rows = {rows}.float()
    return torch.linalg.svd(rows @ rows.mT)
"""


@pytest.mark.parametrize(
    ("parameters", "rows", "certainty"),
    [
        ("layer: nn.Module, damp: float", "layer.weight.data", Certainty.POSSIBLE),
        ("rows: torch.Tensor", "rows", Certainty.PROVEN),
        ("layer: nn.Module, x: torch.Tensor", "layer(x)", Certainty.PROVEN),
    ],
)
def test_the_weights_of_a_module_are_prepared_at_any_time(
    parameters: str, rows: str, certainty: Certainty, tmp_path: Path
) -> None:
    source = Source(tmp_path / "module.py", FACTORS.format(parameters=parameters, rows=rows).encode())
    (finding,) = check_file(source, OPTIONS).findings
    assert finding.certainty is certainty
