"""A constructor's parameter that it gives to a layer as a size is an integer, whatever a caller passes."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.dtypes import FLOAT16
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.infer.machine.sizes import INTEGERS
from amplint.infer.torch_model.layers import find_layer
from amplint.source import Source

LANE = next(i for i, scenario in enumerate(DEFAULT_SCENARIOS) if scenario.name == "autocast-fp16")
MODULE = """\
import torch
from torch import nn


class Module(nn.Module):
    def __init__(self, size, other):
        super().__init__()
        {}
        self.scale = size**-0.5

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        scores = torch.matmul(x, x.mT) * self.scale
        return scores.masked_fill(mask, -1e9)
"""


UNANNOTATED = "MultiheadAttention"
"""Its constructor has no annotations."""


def layers_with_sizes() -> list[tuple[str, str]]:
    found = []
    for name in sorted(vars(torch.nn)):
        layer = find_layer(f"torch.nn.{name}")
        found += [(name, parameter) for parameter in (layer.init if layer is not None else ()) if parameter in INTEGERS]
    return found


@pytest.mark.parametrize(
    ("layer", "parameter"),
    [(layer, parameter) for layer, parameter in layers_with_sizes() if layer != UNANNOTATED and "Loss" not in layer],
)
def test_torch_says_that_they_are_integers(layer: str, parameter: str) -> None:
    annotation = inspect.signature(getattr(torch.nn, layer).__init__).parameters[parameter].annotation
    assert annotation in (int, "int")


@pytest.mark.parametrize("sizes", [(8.0, 2), (torch.tensor(8.0), 2), (8, 2.0), (8, torch.tensor(2.0))])
def test_attention_runs_with_integers_only(sizes: tuple[Any, Any]) -> None:
    x = torch.randn(3, 2, 8)
    torch.nn.MultiheadAttention(8, 2)(x, x, x)
    with pytest.raises(TypeError):
        torch.nn.MultiheadAttention(*sizes)(x, x, x)


def test_every_name_is_one_of_some_layer() -> None:
    assert {parameter for _, parameter in layers_with_sizes()} == INTEGERS


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("self.layer = nn.Linear(size, other)", True),
        ("self.layer = nn.Linear(4, out_features=size)", True),
        ("self.layer = nn.Linear(4, 2 * size)", True),
        ("self.layer = nn.Linear(4, size // other)", True),
        ("inner = other * size; self.layer = nn.Linear(4, inner)", True),
        ("self.size = size; self.layer = nn.Linear(4, self.size)", True),
        ("self.layers = nn.ModuleList(nn.Linear(4, size) for _ in range(3))", True),
        ("self.layer = nn.Linear(other, other)", False),
        ("self.layer = nn.Linear(4, int(size))", False),
        ("self.layer = nn.Linear(4, size[0])", False),
        ("self.layer = nn.Dropout(size)", False),
        ("size = size[0]; self.layer = nn.Linear(4, size)", False),
        ("inner = other; inner = size; self.layer = nn.Linear(4, inner)", False),
        ("self.size, self.layer = size, None; self.layer = nn.Linear(4, self.size)", False),
        ("self.layer = other.Linear(4, size)", False),
        ("self.loss = nn.LinearCrossEntropyLoss(4, 4, out_features=size)", False),
    ],
)
def test_what_a_constructor_gives_to_a_layer(line: str, known: bool) -> None:
    source = Source(Path("/project/module.py"), MODULE.format(line).encode())
    facts = analyse(source, scenarios=DEFAULT_SCENARIOS, device="cuda", torch_version=(2, 13))
    filled = {use.operands[0].value.dtypes[LANE].mask for use in facts.uses if use.numbers}
    assert (filled == {FLOAT16}) is known
