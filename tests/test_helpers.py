"""What lies among tests is merely possible, unless it or a test that mentions it asks for low precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x.float())
"""
PYTEST, UNITTEST = "import pytest\nfrom .nets import Net\n", "from unittest import TestCase\nfrom .nets import Net\n"
MOCKS = "from unittest import mock\nfrom .nets import Net\n"
CASTS = "def test_it():\n    Net().half()\n"


def doubts(folder: Path, others: list[str], net: str = NET) -> list[str]:
    (folder / "nets.py").write_text(net)
    for number, text in enumerate(others):
        (folder / f"part{number}.py").write_text(text)
    options = judging_options(Config(), load_rules(), pedantic=True, extend_select=["AMP102"])
    found = [f for f in check_file(folder / "nets.py", options).findings if f.code == "AMP102"]
    assert len(found) == 1
    return [held.doubt.name for held in found[0].doubts]


@pytest.mark.parametrize(
    "others",
    [[PYTEST] * 3, [UNITTEST] * 3, [PYTEST, UNITTEST, PYTEST, NET], [PYTEST] * 3 + ["import pytest\n" + CASTS]],
)
def test_what_lies_among_tests_is_doubted(tmp_path: Path, others: list[str]) -> None:
    assert doubts(tmp_path, others) == ["run-in-full-precision"]


@pytest.mark.parametrize(
    "others",
    [[], [PYTEST] * 2, [MOCKS] * 3, [PYTEST] * 3 + [NET] * 4, [PYTEST] * 3 + [PYTEST + CASTS]],
)
def test_what_lies_beside_its_tests_or_is_run_in_low_precision_is_not(tmp_path: Path, others: list[str]) -> None:
    assert doubts(tmp_path, others) == []


def test_what_asks_for_low_precision_itself_is_not(tmp_path: Path) -> None:
    assert doubts(tmp_path, [PYTEST] * 3, f"{NET}\ndef made():\n    return Net().to(torch.bfloat16)\n") == []
