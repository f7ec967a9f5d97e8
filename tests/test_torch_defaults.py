"""What importing a package sets as the default dtype: nothing there is half, then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP103",), (), ())
CELL = """\
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return self.inner(torch.zeros(2, 4, device=x.device))
"""


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("import torch\ntorch.set_default_dtype(torch.float64)\n", False),
        ("from torch import double, set_default_dtype\nset_default_dtype(double)\n", False),
        ("import torch\ntorch.set_default_tensor_type('torch.DoubleTensor')\n", False),
        ("import torch\ntorch.set_default_tensor_type(torch.cuda.DoubleTensor)\n", False),
        ("import torch\ntorch.set_default_dtype(torch.float32)\n", True),
        ("import torch\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\n", True),
        ("from torch import float64 as float32, set_default_dtype\nset_default_dtype(float32)\n", False),
        ("import torch as t\nt.set_default_dtype(t.float)\n", True),
        ("import torch\ndef load():\n    torch.set_default_dtype(torch.float64)\n", True),
        ("import torch\n# torch.set_default_dtype(torch.float64)\n", True),
        ("def set_default_dtype(dtype): ...\nset_default_dtype('float64')\n", True),
    ],
)
def test_a_package_with_another_default_is_not_halved(setting: str, told: bool, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "run.py").write_text(setting)
    (package / "cell.py").write_text(CELL)
    assert bool(check_file(package / "cell.py", Options(RULES)).findings) is told


def test_torch_makes_layers_and_tensors_alike() -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.nn.Linear(4, 4)(torch.zeros(2, 4)).dtype is torch.float64
    finally:
        torch.set_default_dtype(before)
