"""What only a script or a test of the file runs is merely possible, unless that asks for low precision."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "import torch\nfrom torch import nn\n"
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return self.proj(x.float())
"""
GUARD = 'if __name__ == "__main__":\n' + textwrap.indent(NET, "    ")
CALLED = "Net()(torch.ones(4, dtype=torch.float32))\n"


def doubts(text: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "model.py"
    file.write_text(HEAD + text)
    found = check_file(file, judging_options(Config(), load_rules(), pedantic=True, extend_select=["AMP102"])).findings
    assert [finding.code for finding in found] == ["AMP102"]
    return [held.doubt.name for held in found[0].doubts]


@pytest.mark.parametrize("text", [GUARD, f"import unittest\n{NET}", f"from pytest import raises\n{NET}{CALLED}"])
def test_what_nobody_else_runs_is_doubted(text: str, tmp_path: Path) -> None:
    assert doubts(text, tmp_path)[0] == "run-in-full-precision"


@pytest.mark.parametrize(
    "text",
    [
        NET,
        f"from unittest import mock\n{NET}".replace("unittest import", "unittest.mock import"),
        f"{GUARD}    Net().half()\n",
        f"{NET}def net():\n    Net().half()\n",
    ],
)
def test_what_is_imported_or_asks_for_low_precision_is_not(text: str, tmp_path: Path) -> None:
    assert doubts(text, tmp_path) == []


@pytest.mark.parametrize(
    "test",
    [
        "import pytest\n{}def test_net():\n    Net().half()\n",
        "from unittest import TestCase\n{}def test_net():\n    Net().to(torch.bfloat16)\n",
        "import pytest\n{}def test_net():\n    with torch.autocast('cuda'):\n        Net()\n",
    ],
)
def test_what_a_test_makes_is_run_by_its_authors(test: str, tmp_path: Path) -> None:
    assert doubts(test.format(NET), tmp_path) == ["in-a-test"]
