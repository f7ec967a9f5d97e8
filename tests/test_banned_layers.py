"""Where a layer that autocast refuses is constructed is said, and `verify` looks for a way that constructs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import amplint

if TYPE_CHECKING:
    from pathlib import Path

LOSS = """\
import torch
from torch import nn


class Loss(nn.Module):
    def __init__(self, kind: str = "mse"):
        super().__init__()
        if kind == "bce":
            self.loss = nn.BCELoss()
        else:
            self.loss = nn.MSELoss()

    def forward(self, x: torch.Tensor, target: torch.Tensor):
        return self.loss(torch.sigmoid(x), torch.sigmoid(target))
"""


MEMBER = LOSS.replace("import torch\n", "import enum\nimport torch\n", 1)
MEMBER = MEMBER.replace("class Loss", 'class Kind(str, enum.Enum):\n    BCE = "bce"\n    MSE = "mse"\n\n\nclass Loss')
MEMBER = MEMBER.replace('kind: str = "mse"', "kind: Kind = Kind.MSE").replace('kind == "bce"', "kind == Kind.BCE")


def test_the_finding_names_the_constructor(project: Path) -> None:
    (project / "loss.py").write_text(LOSS)
    done = amplint("check", "loss.py", "--no-cache")
    assert "loss.py:14:16" in done.stdout
    assert "9 |             self.loss = nn.BCELoss()" in done.stdout
    assert "the layer that is called is constructed here" in done.stdout
    assert "certainty: likely" in done.stdout


@pytest.mark.parametrize(("code", "option"), [(LOSS, "kind='bce'"), (MEMBER, "kind=Kind.BCE")])
def test_verify_constructs_the_layer(project: Path, code: str, option: str) -> None:
    (project / "loss.py").write_text(code)
    done = amplint("verify", "loss.py", "--run-on", "cpu", "--scenario", "autocast-fp16")
    assert "confirmed" in done.stdout
    assert option in done.stdout
