"""AMP107: products in place that autocast would have to reach, where it may be on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP107",), (), ())
UPDATE = """\
import torch
from torch import nn

def update(basis, values, rows):
    product = rows.T @ values
    out = torch.zeros((4, 4), dtype=basis.dtype)
    out.addmm_(basis, product)
    return out
"""
MODULE = """
class Basis(nn.Module):
    def __init__(self):
        super().__init__()
        self.basis = nn.Parameter(torch.eye(4))
        self.given = nn.Linear(4, 4)

    def forward(self, x):
        return update(self.basis, self.given(x), x)
"""
REGION = """
def updated(basis, values):
    with torch.autocast("cuda"):
        return basis @ values
"""


OWN = UPDATE.replace("return out", "with torch.autocast('cuda', enabled=False):\n        return out @ out")


@pytest.mark.parametrize(("code", "told"), [(UPDATE, 0), (UPDATE + MODULE, 1), (UPDATE + REGION, 0), (OWN, 1)])
def test_a_module_runs_the_product_or_its_function_heeds_autocast(code: str, told: int, tmp_path: Path) -> None:
    path = tmp_path / "update.py"
    path.write_text(code)
    assert len(check_file(path, Options(RULES)).findings) == told


def test_under_autocast_the_product_in_place_raises() -> None:
    scope: dict[str, Any] = {}
    exec(UPDATE + MODULE, scope)
    given = torch.ones(4, 4)
    scope["Basis"]()(given)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(RuntimeError, match="dtype"):
        scope["Basis"]()(given)
