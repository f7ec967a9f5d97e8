"""Layers that a constructor chose by one test: what raises in the first of them hides the others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in

CODE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int = 8, deep: bool = True):
        super().__init__()
        self.width = width
        self.deep = deep
        {first}
        {last}

    def forward(self, x: torch.Tensor):
        wide = x.float()
        y = self.first(wide).float()
        return self.last(y)
"""
FIRST = "self.first = nn.Linear(8, width) if self.width > 4 else nn.Identity()"


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (FIRST, "self.last = nn.Linear(width, 8) if self.width > 4 else nn.Identity()", [15]),
        (FIRST, "self.last = nn.Identity() if self.width <= 4 else nn.Linear(width, 8)", [15, 16]),
        (FIRST, "self.last = nn.Linear(width, 8) if self.deep else nn.Identity()", [15, 16]),
        (FIRST, "self.last = nn.Identity() if self.width > 4 else nn.Linear(width, 8)", [15, 16]),
        (FIRST, "self.last = nn.Linear(width, 8)", [15, 16]),
        (
            "self.first = nn.Linear(8, 8) if deep else nn.Identity(); deep = not deep",
            "self.last = nn.Linear(8, 8) if deep else nn.Identity()",
            [15, 16],
        ),
    ],
)
def test_layers_that_go_together(first: str, last: str, told: list[int]) -> None:
    assert told_in(CODE.format(first=first, last=last)) == told


def test_one_test_makes_both_raise_or_neither() -> None:
    code = CODE.format(first=FIRST, last=FIRST.replace("first", "last"))
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    x = torch.ones(2, 8, dtype=torch.bfloat16)
    assert namespace["Net"](4).to(torch.bfloat16)(x).dtype is torch.float32
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Net"](8).to(torch.bfloat16)(x)
    assert [e.lineno + 1 for e in caught.traceback if str(e.path).endswith("net.py")] == [15]
