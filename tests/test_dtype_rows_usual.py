"""Dtypes of expressions in modules that are configured: by defaults, strings, flags and dataclasses."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from amplint.annotate.rows import file_dtypes
from amplint.claims.conflicts import conflicts
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.assumptions import ANY_CALLER, AS_USED, Assumptions
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.infer.state.observe import Observer
from amplint.infer.state.record import Recorder
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """import dataclasses
import functools
from dataclasses import dataclass, field

import torch
import torch.nn as nn

"""
SCENARIO = find_scenario("autocast-bf16")
assert SCENARIO is not None


def _source(folder: Path, text: str) -> Source:
    (folder / "__init__.py").touch()
    path = folder / "model.py"
    path.write_text(HEADER + dedent(text))
    return Source(path, path.read_bytes())


def _dtypes(folder: Path, text: str, expression: str) -> list[tuple[str, ...]]:
    """The dtypes of each expression of a program that is written like this."""
    source = _source(folder, text)
    rows = file_dtypes(source, scenarios=(CONTROL, SCENARIO), device="cuda", torch_version=(2, 13)).rows
    return [
        row.dtypes[1] or ()
        for row in rows
        if row.span.start.row == row.span.end.row
        and source.lines[row.span.start.row - 1][row.span.start.column - 1 : row.span.end.column - 1] == expression
    ]


NET = """
class Net(nn.Module):
    def __init__(self, {parameters}):
        super().__init__()
{init}

    def forward(self, x):
        return self.layer(x)
"""
LINEAR, NORM = ("bfloat16",), ("float32",)
CHOICES = {
    "string": ("kind='avg'", "if kind == 'avg':", LINEAR),
    "another-string": ("kind='avg'", "if kind != 'avg':", NORM),
    "one-of-strings": ("kind='avg'", "if kind in ('max', 'avg'):", LINEAR),
    "prefix": ("kind='fastavg'", "if kind.startswith('fast'):", LINEAR),
    "part": ("kind='batch-2d'", "if kind.split('-')[0] == 'batch':", LINEAR),
    "flag": ("linear=False", "if linear:", NORM),
    "no-flag": ("linear=False", "if not linear:", LINEAR),
    "number": ("rate=0.0", "if rate > 0.0:", NORM),
    "both": ("rate=0.5, linear=True", "if linear and rate > 0.0:", LINEAR),
    "either": ("kind='', linear=False", "if kind or linear:", NORM),
}


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_what_callers_usually_pass_decides(tmp_path: Path, name: str) -> None:
    parameters, test, expected = CHOICES[name]
    init = f"{test}\n    self.layer = nn.Linear(8, 8)\nelse:\n    self.layer = nn.LayerNorm(8)"
    text = NET.format(parameters=parameters, init="\n".join(" " * 8 + line for line in init.splitlines()))
    assert _dtypes(tmp_path, text, "self.layer(x)") == [expected]


def test_a_parameter_without_a_default_leaves_both(tmp_path: Path) -> None:
    init = "        self.layer = nn.Linear(8, 8) if flag else nn.LayerNorm(8)"
    text = NET.format(parameters="flag", init=init)
    assert _dtypes(tmp_path, text, "self.layer(x)") == [("bfloat16", "float32")]


def test_a_number_chooses_between_a_parameter_and_none(tmp_path: Path) -> None:
    text = """
        class Net(nn.Module):
            def __init__(self, scale=0.0):
                super().__init__()
                self.linear = nn.Linear(8, 8)
                self.gamma = nn.Parameter(torch.ones(8)) if scale > 0 else None

            def forward(self, x):
                y = self.linear(x)
                if self.gamma is not None:
                    y = self.gamma * y
                return y.relu()
        """
    assert _dtypes(tmp_path, text, "y.relu()") == [("bfloat16",)]


def test_what_is_usually_none_is_not_used(tmp_path: Path) -> None:
    text = """
        class Net(nn.Module):
            def __init__(self, use_token=False):
                super().__init__()
                self.linear = nn.Linear(8, 8)
                self.token = nn.Parameter(torch.ones(8)) if use_token else None

            def forward(self, x, mask=None):
                y = self.linear(x)
                if mask is not None:
                    y = y + self.token.expand(2, 8)
                return y.relu()
        """
    assert _dtypes(tmp_path, text, "y.relu()") == [("bfloat16",)]


def test_rows_of_an_unusual_branch_are_there(tmp_path: Path) -> None:
    text = """
        class Net(nn.Module):
            def __init__(self, norm=False):
                super().__init__()
                if norm:
                    self.norm = nn.LayerNorm(8)
                self.linear = nn.Linear(8, 8)
                self.flag = norm

            def forward(self, x):
                if self.flag:
                    return self.norm(x)
                return self.linear(x)
        """
    assert _dtypes(tmp_path, text, "self.norm(x)") == [("float32",)]
    assert _dtypes(tmp_path, text, "self.linear(x)") == [("bfloat16",)]


OPTIONAL = """
    class Net(nn.Module):
        def __init__(self, low=False):
            super().__init__()
            self.linear = nn.Linear(8, 8) if low else nn.LayerNorm(8)

        def forward(self, x):
            table = torch.zeros(8, 8)
            table[torch.tensor([0])] = self.linear(x)
            return table
    """


def _conflicts(folder: Path, text: str, assumptions: Assumptions, recorder: Recorder) -> list[str]:
    facts = analyse(
        _source(folder, text),
        scenarios=(CONTROL, SCENARIO),
        device="cuda",
        torch_version=(2, 13),
        assumptions=assumptions,
        recorder=recorder,
    )
    return [conflict.op for conflict in conflicts(facts)]


@pytest.mark.parametrize("recorder", [Recorder, Observer])
def test_what_is_assumed_decides_and_not_what_is_recorded(tmp_path: Path, recorder: type[Recorder]) -> None:
    assert _conflicts(tmp_path, OPTIONAL, ANY_CALLER, recorder()) == ["torch.Tensor.index_put_"]
    assert _conflicts(tmp_path, OPTIONAL, AS_USED, recorder()) == []
    assert _dtypes(tmp_path, OPTIONAL, "self.linear(x)") == [("float32",)]


CONFIGURED = """
@dataclass
class BlockConfig:
    norm: str = "layer"
    scale: float = 1.0

    def __post_init__(self):
        self.doubled = self.scale * 2


@dataclass
class Config:
    width: int = 8
    block: BlockConfig = field(default_factory=BlockConfig)


LAYERS = dict(linear=nn.Linear, layer=nn.LayerNorm)


def layer_of(name):
    # unbinds a partial, as factories do that take a name or a class: long enough not to be followed for its size
    options = {}
    if isinstance(name, functools.partial):
        options.update(name.keywords)
        name = name.func
    if isinstance(name, str):
        if not name:
            return None
        chosen = LAYERS[name.replace("_", "").lower().split("-")[0]]
    else:
        chosen = name
    if options:
        chosen = functools.partial(chosen, **options)
    return chosen


class Net(nn.Module):
    def __init__(self, config: Config, **kwargs):
        super().__init__()
        config = dataclasses.replace(config, block=dataclasses.replace(config.block, **kwargs), width=4)
        self.norm = layer_of(config.block.norm)(config.width)
        self.linear = layer_of("linear")(8, 8)

    def forward(self, x):
        return self.norm(self.linear(x))
"""


def test_a_copy_of_a_dataclass_keeps_its_fields(tmp_path: Path) -> None:
    assert _dtypes(tmp_path, CONFIGURED, "self.norm(self.linear(x))") == [("float32",)]
    assert _dtypes(tmp_path, CONFIGURED, "self.linear(x)") == [("bfloat16",)]


def test_a_copy_of_a_dataclass_has_what_it_is_given(tmp_path: Path) -> None:
    text = CONFIGURED.replace("config.block, **kwargs", "config.block, norm='linear'")
    assert _dtypes(tmp_path, text, "self.norm(self.linear(x))") == [("bfloat16",)]


def test_an_operand_that_decides_an_or_is_all_there_is(tmp_path: Path) -> None:
    text = """
        class Net(nn.Module):
            def __init__(self, dim: int):
                super().__init__()
                name = "" or "layer"
                self.layer = nn.LayerNorm(dim) if name == "layer" else nn.Linear(dim, dim)

            def forward(self, x):
                return self.layer(x)
        """
    assert _dtypes(tmp_path, text, "self.layer(x)") == [("float32",)]
