"""A constant that does not fit raises in another file, too: nothing behind the call that leads there is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

SCORES = """
from torch import nn

class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)

    def forward(self, x, mask):
        return self.query(x).masked_fill(mask, NUMBER)
"""
MODEL = """
from torch import nn
from .scores import Scores

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = Scores()
        self.flat = nn.Linear(4, 4)

    def forward(self, x, mask):
        y = self.scores(x, mask > 0)
        return self.flat(x).masked_fill(mask > 0, -1e9) + y
"""


@pytest.mark.parametrize(("number", "expected"), [("-1e9", ["fails-before"]), ("-1e4", [])])
def test_what_stands_behind_is_not_reached(tmp_path: Path, number: str, expected: list[str]) -> None:
    package = tmp_path / "package"
    package.mkdir()
    files = {"__init__.py": "", "scores.py": SCORES.replace("NUMBER", number), "model.py": MODEL}
    for name, text in files.items():
        (package / name).write_text(text)
    options = judging_options(Config(), load_rules(), pedantic=True, select=["AMP301"])
    (finding,) = check_file(package / "model.py", options).findings
    assert [held.doubt.name for held in finding.doubts] == expected


@pytest.mark.parametrize(("number", "raises"), [(-1e9, True), (-1e4, False)])
def test_torch_refuses_what_does_not_fit(number: float, raises: bool) -> None:
    x, mask = torch.zeros(2, dtype=torch.float16), torch.ones(2, dtype=torch.bool)
    if raises:
        with pytest.raises(RuntimeError, match="overflow"):
            x.masked_fill(mask, number)
    else:
        assert x.masked_fill(mask, number).dtype is torch.float16
