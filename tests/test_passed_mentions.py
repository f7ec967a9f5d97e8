"""A function that is mentioned only where a line needs an argument which nothing passes is not run either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_passed import is_doubted, model

if TYPE_CHECKING:
    from pathlib import Path

MADE_APART = """
import torch
from functools import partial
from torch import nn

class Scores(nn.Module):
    def __init__(self, causal=False, other=None):
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.causal = causal
        if causal:
            self.filled = MENTION
        self.other = other

    def forward(self, x):
        scores = self.query(x)
        return self.filled(scores) if self.causal else OTHERWISE

def fill(scores):
    return scores.masked_fill(scores > 0, -1e9)
"""


@pytest.mark.parametrize(
    ("made", "mention", "otherwise", "expected"),
    [
        ("Scores()", "fill", "scores", True),
        ("Scores(False)", "partial(fill)", "scores", True),
        ("Scores(causal=False)", "lambda scores: fill(scores)", "scores", True),
        ("Scores(other=1)", "fill", "scores", True),
        ("Scores(True)", "fill", "scores", False),
        ("Scores(mask)", "fill", "scores", False),
        ("Scores()", "fill", "fill(scores)", False),
        ("Scores()", "fill", "list(map(fill, [scores]))[0]", False),
    ],
)
def test_what_only_such_a_line_mentions(
    made: str, mention: str, otherwise: str, expected: bool, tmp_path: Path
) -> None:
    file = MADE_APART.replace("MENTION", mention).replace("OTHERWISE", otherwise)
    made_by = model("return self.scores(x)").items()
    files = {
        name: text.replace("__init__(self)", "__init__(self, mask)").replace("MADE", made) for name, text in made_by
    }
    files["model.py"] = files["model.py"].replace("self.scores = Scores()", f"self.scores = {made}")
    assert is_doubted(tmp_path, {**files, "scores.py": file}) is expected
