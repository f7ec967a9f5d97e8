"""Behind float64 that a layer refuses in any dtype nothing is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from amplint.engine import Options, check_file
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

DOUBLED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8)
        self.register_buffer("scale", torch.ones(8, dtype=torch.float64))

    def forward(self, x: torch.Tensor):
        y = self.first({given})
        return self.last(x).detach().cpu().numpy(), y
"""


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ("x.double()", []),
        ("x.to(torch.float64)", []),
        ("x", ["AMP305"]),
        ("x.double().float()", ["AMP305"]),
        ("self.scale", ["AMP305"]),
        ("self.scale.repeat(2, 1)", ["AMP305"]),
    ],
)
def test_behind_what_float32_refuses_too_nothing_is_reached(given: str, codes: list[str], tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(DOUBLED.format(given=given))
    rules = tuple(rule for rule in load_rules() if rule.code == "AMP305")
    assert [finding.code for finding in check_file(path, Options(rules)).findings] == codes


def test_torch_refuses_it_in_float32() -> None:
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(DOUBLED.format(given="x.double()"), "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype"):
        namespace["Net"]()(torch.randn(2, 8))
