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


SPECTRUM = """\
import torch
from torch import nn


class Inverse(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        real, imaginary = x[..., 0, :], x[..., 1, :]
        re = x[:, 0]
        im = x[:, 1]
        return {}
"""


@pytest.mark.parametrize(
    ("line", "certainty"),
    [
        ("torch.complex(x[..., 0], x[..., 1])", Certainty.POSSIBLE),
        ("torch.complex(re, im)", Certainty.POSSIBLE),
        ("torch.complex(x[..., 0], x[..., 2])", Certainty.LIKELY),
        ("torch.complex(x[..., 0], y[..., 1])", Certainty.LIKELY),
        ("torch.complex(x, y)", Certainty.LIKELY),
        ("torch.stft(x, 16, return_complex=True)", Certainty.LIKELY),
        ("torch.stft(x, 16)", None),
    ],
)
def test_spectra(line: str, certainty: Certainty | None, tmp_path: Path) -> None:
    source = Source(tmp_path / "module.py", SPECTRUM.format(line).encode())
    assert [finding.certainty for finding in check_file(source, OPTIONS).findings] == ([certainty] if certainty else [])
