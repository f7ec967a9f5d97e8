"""Attributes under names that are computed: what is set under them is read back, as Python does it."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in

from amplint.infer.syntax.templates import formatted, interpolated, meet, names_family

CODE = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, count: int = 2):
        super().__init__()
        self.count = count
        self.register_buffer("kept_out", torch.ones(8))
        for i in range(1, count + 1):
            {put}

    def forward(self, x: torch.Tensor):
        i = self.count
        return {use}
"""
LAST = 14


def raising(put: str, use: str) -> list[int]:
    """The lines on which a model in bfloat16 raises."""
    namespace: dict[str, Any] = {}
    exec(compile(CODE.format(put=put, use=use), "net.py", "exec"), namespace)
    try:
        namespace["Net"]().to(torch.bfloat16)(torch.ones(2, 8, dtype=torch.bfloat16))
    except RuntimeError as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "net.py"]
        return [own[-1].lineno or 0] if "dtype" in str(error) else []
    return []


PUT = [
    'setattr(self, f"wide_{i}", nn.Linear(8, 8))',
    'setattr(self, "wide_" + str(i), nn.Linear(8, 8))',
    'setattr(self, "wide_%d" % i, nn.Linear(8, 8))',
    'setattr(self, "wide_{}".format(i), nn.Linear(8, 8))',
    'self.__setattr__(f"wide_{i}", nn.Linear(8, 8))',
    'super().__setattr__(f"wide_{i}", nn.Linear(8, 8))',
    'self.add_module(f"wide_{i}", nn.Linear(8, 8))',
    'self.register_module(name=f"wide_{i}", module=nn.Linear(8, 8))',
    'name = f"wide_{i}"; setattr(self, name, nn.Linear(8, 8))',
    "self.wide_1 = nn.Linear(8, 8); self.wide_2 = nn.Linear(8, 8)",
]
USE = [
    'getattr(self, f"wide_{i}")(x.float())',
    'getattr(self, "wide_" + str(i))(x.float())',
    'getattr(self, f"wide_{self.count}")(x.float())',
    'self.__getattr__(f"wide_{i}")(x.float())',
    'self.get_submodule(f"wide_{i}")(x.float())',
    "self.wide_1(x.float())",
    'getattr(self, f"wide_1")(x.float())',
]


@pytest.mark.parametrize("use", USE)
@pytest.mark.parametrize("put", PUT)
def test_what_is_set_under_a_computed_name_is_read_back(put: str, use: str) -> None:
    told = told_in(CODE.format(put=put, use=use))
    assert told == raising(put, use) == [LAST]


@pytest.mark.parametrize(
    ("put", "use"),
    [
        (
            'setattr(self, f"low_{i}", nn.Identity()); setattr(self, f"wide_{i}", nn.Linear(8, 8))',
            'getattr(self, f"low_{i}")(x.float())',
        ),
        (
            'setattr(self, f"low_{i}", nn.Identity()); self.low_out = nn.Linear(8, 8)',
            'getattr(self, f"low_{self.count}")(x.float())',
        ),
        ('self.register_buffer(f"low_{i}", torch.ones(8))', 'torch.dot(x[0], getattr(self, f"low_{i}"))'),
        ('self.register_buffer(f"low_{i}", torch.ones(8))', "torch.dot(x[0], self.low_2)"),
    ],
)
def test_other_families_are_not_read(put: str, use: str) -> None:
    assert told_in(CODE.format(put=put, use=use)) == raising(put, use) == []


@pytest.mark.parametrize("name", ['f"{str(i)}"', "str(i)", "names[i]", 'f"{str(i)}_{str(i)}"'])
def test_names_of_which_nothing_is_known_say_nothing(name: str) -> None:
    code = CODE.format(put=f"names = self.names; setattr(self, {name}, nn.Linear(8, 8))", use="self.wide_1(x.float())")
    assert told_in(code) == []


DISPATCH = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode
        self.run_last = nn.Linear(8, 8)

    def run_wide(self, x):
        return self.run_last(x)

    def forward(self, x: torch.Tensor):
        return getattr(self, f"run_{self.mode}")(x.float())
"""


def test_a_name_that_a_method_has_too_is_not_followed() -> None:
    assert told_in(DISPATCH) == []


@pytest.mark.parametrize(("family", "told"), [("wide", [LAST]), ("other", [])])
def test_a_plain_name_may_hold_what_a_computed_one_was_set_to_later(family: str, told: list[int]) -> None:
    put = f'self.wide_2 = nn.Identity(); setattr(self, f"{family}_{{i}}", nn.Linear(8, 8))'
    use = "self.wide_2(x.float())"
    assert told_in(CODE.format(put=put, use=use)) == raising(put, use) == told


BLOCK = """\
import torch
from torch import nn

class Block(nn.Sequential):
    def __init__(self, count: int = 2):
        super().__init__()
        for i in range(count):
            self.add_module(f"layer{i}", nn.Linear(8, 8))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x.float())
"""


def test_a_sequential_runs_what_was_added_under_computed_names() -> None:
    assert told_in(BLOCK) == [16]


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        ("stage_1", "stage_1", True),
        ("stage_1", "stage_2", False),
        ("stage_#", "stage_12", True),
        ("stage_#", "stage_", False),
        ("stage_#", "stage_out", False),
        ("stage_*", "stage_out", True),
        ("stage_*", "stages", False),
        ("up#_#", "up*_*", True),
        ("up#_#", "up1_0", True),
        ("up#_#", "up10", False),
        ("*_out", "stage_#", False),
        ("*_1", "stage_#", True),
        ("*", "", True),
    ],
)
def test_names_that_may_be_the_same(a: str, b: str, alike: bool) -> None:
    assert meet(a, b) is meet(b, a) is alike


def test_forms_of_texts() -> None:
    assert interpolated("a%d_%s%%%(n)02d") == "a#_*%#"
    assert formatted("a{}_{n:>3}{{}}") == "a*_*{}"
    assert formatted("a{") is None
    assert names_family("a*")
    assert not names_family("*_#")
