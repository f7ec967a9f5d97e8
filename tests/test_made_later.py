"""Objects of a project's classes that a module makes while it runs, or by a method: their weights are not those of the
converted model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in

CODE = """\
import torch
from abc import ABC
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4, 4))

    def forward(self, y):
        return self.layer(y) @ self.scale


class Net(nn.Module{bases}):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        {made}

    def build(self):
        self.inner = Inner()

    def other(self):
        return Inner()

    def forward(self, x: torch.Tensor):
        h = self.first(x)
        {run}
"""
CASES = {
    "in forward": ("pass", "return Inner()(h.float())", True, []),
    "in forward, for what the model computed": ("pass", "return Inner()(h)", False, [13]),
    "by a method": ("pass", "return self.other()(h.float())", True, []),
    "by a method that the constructor calls": ("self.build()", "return self.inner(h.float())", False, [13]),
    "by the constructor": ("self.inner = Inner()", "return self.inner(h.float())", False, [13]),
}


@pytest.mark.parametrize("bases", ["", ", ABC"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_told_is_what_raises(name: str, bases: str) -> None:
    made, run, runs, told = CASES[name]
    code = CODE.format(made=made, run=run, bases=bases)
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    net, x = namespace["Net"]().to(torch.bfloat16), torch.ones(2, 4).bfloat16()
    if runs:
        assert net(x).dtype is torch.float32
    else:
        with pytest.raises(RuntimeError, match="dtype"):
            net(x)
    assert told_in(code) == told
