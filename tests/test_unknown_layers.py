"""What layers of another package give is not known, however often they are run and whatever is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import amplint

if TYPE_CHECKING:
    from pathlib import Path

MODEL = """import torch
from torch import nn
from elsewhere import Block


class Model(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(count)])
        self.norm = nn.LayerNorm(4)

    def forward(self, x, rate=0.0):
        x = torch.zeros(4, 4)
        for layer in self.layers:
            BODY
        return self.norm(x)
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("x = layer(x)", False),
        ("x = layer(x)\n            if rate > 0:\n                x = nn.functional.dropout(x, rate)", False),
        ("x = layer(x)\n            x = nn.functional.dropout(x, rate)", False),
        ("layer(x)", True),
        ("x = nn.functional.dropout(x, rate)", True),
    ],
)
def test_behind_a_loop_over_them(tmp_path: Path, body: str, found: bool) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL.replace("BODY", body))
    assert ("AMP103" in amplint("check", "--pedantic", "--scenario", "fp16", str(file)).stdout) is found
