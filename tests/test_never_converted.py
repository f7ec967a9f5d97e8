"""Models that code makes outside of any module: no conversion reaches them, and their callers have float32 too."""

from __future__ import annotations

import pytest

import amplint

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(4)])

    def forward(self, x):
        return self.norms[0](self.first({x}))


class Detector:
    def __init__(self):
        self.model = Net().cuda()

    def predict(self, batch: torch.Tensor):
        return self.model(batch)
"""


CASES = ["x", "x.to(next(self.norms.parameters()).dtype)", "x.to(next(self.parameters()).dtype)"]


def rows(source: str) -> set[int]:
    return {finding.span.start.row for finding in amplint.check_source(source, select=["AMP102", "AMP103", "AMP104"])}


@pytest.mark.parametrize("x", CASES)
def test_a_model_that_is_never_converted_gets_float32(x: str) -> None:
    assert rows(MODEL.format(x=x)) == set()


def test_a_model_inside_of_a_module_is_converted_with_it() -> None:
    module = MODEL.replace("Detector:", "Detector(nn.Module):").replace("predict", "forward")
    module = module.replace("        self.model", "        super().__init__()\n        self.model")
    assert rows(module.format(x="x")) == set()
    assert rows(module.format(x="x.float()")) == {12}


PROGRAM = """\
import torch
from torch import nn


def made(size):
    return nn.Linear(size, size)


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = nn.Linear(size, size)
        self.layer = {maker}(size)

    @staticmethod
    def made(size):
        return nn.Linear(size, size)

    @classmethod
    def of_class(cls, size):
        return nn.Linear(size, size)

    def own(self, size):
        return nn.Linear(size, size)

    def forward(self, x):
        return self.layer(self.first(x))


if __name__ == "__main__":
    net = Net(4)
    net(torch.zeros(2, 4))
"""


@pytest.mark.parametrize("maker", ["nn.Linear", "made", "Net.made", "self.made", "self.of_class", "self.own"])
def test_a_program_has_its_model_as_the_constructor_makes_it(maker: str) -> None:
    """By whatever function or method that gets each layer."""
    assert rows(PROGRAM.format(maker=maker)) == set()
