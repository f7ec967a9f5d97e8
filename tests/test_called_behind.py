"""A method that only its own class calls, behind what raises, is not reached; one that others may call is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

LOSSES = """
import torch
import torch.nn.functional as F
from torch import nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 4)

    def forward(self, x):
        return self.score(x)

    def loss(self, batches, goals):
        found = {}
        for scores in batches:
            FIRST
            SECOND
        return found

    def positive(self, scores):
        return F.binary_cross_entropy(scores, torch.ones_like(scores))

    def negative(self, scores):
        return F.binary_cross_entropy(scores, torch.zeros_like(scores))
"""
POSITIVE, NEGATIVE = "found['positive'] = self.positive(scores)", "found['negative'] = self.negative(scores)"


@pytest.mark.parametrize(
    ("first", "second", "more", "reached"),
    [
        (POSITIVE, NEGATIVE, "", False),
        (POSITIVE, f"if goals: {NEGATIVE}", "", False),
        (f"if goals: {POSITIVE}", NEGATIVE, "", True),
        (NEGATIVE, POSITIVE, "", True),
        (POSITIVE, NEGATIVE, "def f(head, x):\n    return head.negative(x)\n", True),
        (POSITIVE, NEGATIVE, "def f(head, x):\n    return getattr(head, 'negative')(x)\n", True),
        (POSITIVE, NEGATIVE, "def f(losses):\n    return losses['negative']\n", False),
        (POSITIVE, NEGATIVE, "def f(image):\n    return image.negative()\n", False),
        (POSITIVE, NEGATIVE, "def f(image, *given):\n    return image.negative(*given)\n", True),
    ],
)
def test_what_its_class_calls_behind_a_failure(
    tmp_path: Path, first: str, second: str, more: str, reached: bool
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    text = LOSSES.replace("FIRST", first).replace("SECOND", second)
    for name, content in {"__init__.py": "", "head.py": text, "more.py": more}.items():
        (package / name).write_text(content)
    options = judging_options(Config(), load_rules(), pedantic=True, extend_select=["AMP304"])
    found = {f.span.start.row: f for f in check_file(package / "head.py", options).findings if f.code == "AMP304"}
    row = text[: text.index("def negative")].count("\n") + 2
    assert ("no-way-in" in [held.doubt.name for held in found[row].doubts]) == (not reached)


def test_a_decorator_may_change_what_a_method_takes(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    text = (
        LOSSES.replace("FIRST", POSITIVE)
        .replace("SECOND", NEGATIVE)
        .replace("def negative", "@given\n    def negative")
    )
    text = text.replace("from torch import nn\n", "from torch import nn\nfrom .more import given\n")
    for name, content in {"__init__.py": "", "head.py": text, "more.py": "def f(head):\n    head.negative()\n"}.items():
        (package / name).write_text(content)
    options = judging_options(Config(), load_rules(), pedantic=True, extend_select=["AMP304"])
    found = {f.span.start.row: f for f in check_file(package / "head.py", options).findings if f.code == "AMP304"}
    row = text[: text.index("def negative")].count("\n") + 2
    assert "no-way-in" not in [held.doubt.name for held in found[row].doubts]
