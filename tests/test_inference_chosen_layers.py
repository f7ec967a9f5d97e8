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


NAMED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        if {test}:
            self.rnn = getattr(nn, kind)(8, 8)
        else:
            raise ValueError(kind)

    def forward(self, x: torch.Tensor):
        return self.rnn(x, torch.zeros(1, 2, 8, device=x.device))
"""


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("kind == 'GRU'", [14]),
        ("kind in ('GRU', 'RNN')", [14]),
        ("kind in ['RNN']", [14]),
        ("kind != 'LSTM'", []),
        ("not kind < 'GRU'", []),
        ("not kind != 'GRU'", [14]),
        ("kind in ('GRU', len(kind))", []),
        ("kind", []),
    ],
)
def test_layers_by_a_name_that_was_tested(test: str, told: list[int]) -> None:
    code = NAMED.format(test=test)
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises((RuntimeError, ValueError), match="dtype") as caught:
        namespace["Net"]("RNN" if "RNN" in test else "GRU").to(torch.bfloat16)(torch.ones(3, 2, 8).bfloat16())
    assert [e.lineno + 1 for e in caught.traceback if str(e.path).endswith("net.py")] == [14]
    assert told_in(code) == told


OF_A_TABLE = """\
import torch
from torch import nn


class Free(nn.Module):
    def forward(self, x, state):
        return x


class Net(nn.Module):
    def __init__(self, kind: str = "rnn"):
        super().__init__()
        self.options = {{"kind": kind.lower()}}
        if self.options["kind"] in {{"rnn", "gru"}}:
            self.inner = nn.GRU(8, 8)
        else:
            self.inner = Free()

    def change(self, kind):
        {other}

    def forward(self, x: torch.Tensor):
        {before}
        if self.options["kind"] in {{"rnn", "gru"}}:
            return self.inner(x)[0]
        return self.inner(x, torch.ones(1, 4, 8, device=x.device))
"""


@pytest.mark.parametrize(
    ("other", "before", "told"),
    [
        ("pass", "pass", []),
        ("self.options['kind'] = kind", "pass", [26]),
        ("self.options.update(kind=kind)", "pass", [26]),
        ("pass", "self.options['kind'] = 'none'", [26]),
    ],
)
def test_a_table_of_options_chooses_too(other: str, before: str, told: list[int]) -> None:
    assert told_in(OF_A_TABLE.format(other=other, before=before)) == told
