"""What a test whether something is one of some constants says of another such test."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

import pytest
from conftest import amplint

from amplint.infer.syntax.memberships import membership_of

if TYPE_CHECKING:
    from pathlib import Path

TESTS = (
    *("a == 1", "a != 1", "a == 2", "a is None", "a is not None", "not a == 1"),
    *("a in (1, 2)", "a not in (1, 2)", "a in [2, 3]", 'a in {"x", 1}', 'a == "x"', "a in (1, 2, None)"),
)
VALUES = (1, 2, 3, 4, "x", "y", None)


def test_what_one_says_of_another_holds() -> None:
    """Of every pair of tests, for all values: nothing is said that is not so, and what always is so is said."""
    decided = 0
    for first, second in itertools.product(TESTS, repeat=2):
        one, other = (membership_of(ast.parse(text, mode="eval").body) for text in (first, second))
        assert one is not None
        assert other is not None
        for truth in (True, False):
            results = {eval(second, {"a": value}) for value in VALUES if eval(first, {"a": value}) is truth}
            said = one.says(truth, other)
            assert said is (results.pop() if len(results) == 1 else None), (first, truth, second)
            decided += said is not None
    assert decided > len(TESTS)


@pytest.mark.parametrize("test", ["a == b", "a in b", "a == 1 == c", "a > 1", "a in (1, b)", "a == True", "f(a) == 1"])
def test_others_are_none(test: str) -> None:
    assert membership_of(ast.parse(test, mode="eval").body) is None


PROGRAM = """import torch
from torch import nn


class Loss(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        if kind == "plain":
            self.loss = nn.BCELoss()
        else:
            self.loss = nn.BCEWithLogitsLoss()

    def forward(self, x, y):
        if TEST:
            return self.loss(x, y)
        return x
"""


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ('self.kind == "plain"', True),
        ('self.kind in ("plain", "logits")', True),
        ('self.kind == "logits"', False),
        ('self.kind in ("logits", "both")', False),
        ('self.kind != "plain"', False),
        ('self.kind not in ("plain", "logits")', False),
        ("self.kind is None", False),
    ],
)
def test_a_method_finds_what_the_constructor_chose_by_another_constant(tmp_path: Path, test: str, found: bool) -> None:
    file = tmp_path / "loss.py"
    file.write_text(PROGRAM.replace("TEST", test))
    assert ("AMP304" in amplint("check", str(file)).stdout) is found
