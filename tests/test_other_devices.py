"""What a file for another accelerator does under autocast on CUDA is merely possible: it never runs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from doubted import doubts

if TYPE_CHECKING:
    from pathlib import Path

CACHE = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(8, 4))

    def forward(self, x, index):
        self.cache.index_copy_(0, index, self.key(x))
        return torch.cuda.amp.autocast()
"""


@pytest.mark.parametrize(
    ("imported", "expected"),
    [
        ("", []),
        ("import habana_frameworks.torch.core as htcore\n", ["other-device"]),
        ("from torch_xla.core import xla_model\n", ["other-device"]),
        ("import torch_npu\n", ["other-device"]),
        ("try:\n    import torch_npu\nexcept ImportError:\n    torch_npu = None\n", []),
        ("if gaudi():\n    import habana_frameworks.torch\n", []),
        ("from .torch_xla import helper\n", []),
        ("import torch_xla_helpers\n", []),
    ],
)
def test_a_file_for_another_accelerator(tmp_path: Path, imported: str, expected: list[str]) -> None:
    (tmp_path / "a.py").write_text(imported + CACHE)
    assert doubts(tmp_path / "a.py", "AMP105") == expected
    assert doubts(tmp_path / "a.py", "AMP601") == []
