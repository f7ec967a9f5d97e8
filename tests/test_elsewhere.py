"""What fails in another file for what this file hands it: a finding at the call, with that file as a cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty, FileResult
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.finding import Finding

DECODER = """\
import torch
from torch import nn
from torch.nn import functional as F

class Decoder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.ReLU())

    def forward(self, x: torch.Tensor):
        x = torch.tanh(x / 3) * 3
        return self.layers(x)

class Wrong(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        return self.layer(x.float())

def filtered(x, kernel):
    return F.conv1d(x, kernel)
"""
MODEL = """\
import torch
from torch import nn
from .decoder import Decoder, Wrong, filtered

class Model(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.encoder = nn.Linear(dim, dim)
        self.decoder = Decoder(dim)
        self.wrong = Wrong(dim)

    def forward(self, x: torch.Tensor):
        {first}
        return {last}

class Other(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.wrong = Wrong(dim)

    def forward(self, x: torch.Tensor):
        return self.wrong(x)
"""


def findings(path: Path) -> list[Finding]:
    rules = tuple(rule for rule in load_rules() if rule.code.startswith("AMP1"))
    result = check_file(path, Options(rules=rules, scenarios=DEFAULT_SCENARIOS))
    assert isinstance(result, FileResult)
    return list(result.findings)


@pytest.mark.parametrize(
    ("first", "last", "code"),
    [
        ("x = self.encoder(x).mul(255).byte() / 255.0", "self.decoder(x)", "AMP103"),
        ("x = self.encoder(x).float()", "self.decoder(x)", "AMP102"),
        ("kernel = torch.ones(4, 8, 1, device=x.device)", "filtered(self.encoder(x), kernel)", "AMP103"),
    ],
)
def test_what_is_handed_over_is_told_at_the_call(tmp_path: Path, first: str, last: str, code: str) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    other = tmp_path / "package" / "decoder.py"
    other.write_text(DECODER)
    model = tmp_path / "package" / "model.py"
    model.write_text(MODEL.format(first=first, last=last))
    [found] = findings(model)
    line = model.read_text().splitlines()[found.span.start.row - 1]
    assert (found.code, line.strip()) == (code, f"return {last}")
    assert found.scenarios == ("fp16", "bf16", "bf16-mixed-params")
    assert found.fix is None
    assert found.certainty is not Certainty.POSSIBLE
    assert found.causes[-1].filename == other
    there = other.read_text().splitlines()[found.causes[-1].span.start.row - 1].strip()
    assert there in ("return self.layers(x)", "return F.conv1d(x, kernel)")
    assert f"(decoder.py:{found.causes[-1].span.start.row})" in found.message
    assert [f.span.start.row for f in findings(other)] == [20], "the other file is told of its own defect alone"


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("x = self.encoder(x)", "self.wrong(x)"),
        ("x = self.encoder(x)", "self.decoder(x)"),
        ("x = self.encoder(x).float()", "self.decoder(x.to(self.encoder.weight.dtype))"),
        ("kernel = torch.ones(4, 8, 1, dtype=x.dtype)", "filtered(x, kernel)"),
    ],
)
def test_what_fails_for_any_caller_or_for_none_is_not(tmp_path: Path, first: str, last: str) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "decoder.py").write_text(DECODER)
    model = tmp_path / "model.py"
    model.write_text(MODEL.format(first=first, last=last))
    assert findings(model) == []
