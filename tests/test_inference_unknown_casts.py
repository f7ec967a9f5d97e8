"""``.to()`` of something that may be a dtype as well as a device leaves the dtype unknown, whatever it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.source import Source

CODE = """\
import torch
from torch import nn
from elsewhere import SETTINGS, policy


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.config = config

    def forward(self, x, given):
        inner = self.inner(x)
        wide = inner.to({argument})
        with torch.autocast("cuda", enabled=False):
            return torch.mm(wide, inner.float())
"""


def conflicts(argument: str) -> int:
    source = Source(Path("/project/net.py"), CODE.format(argument=argument).encode())
    scenario = find_scenario("autocast-fp16")
    assert scenario is not None
    facts = analyse(source, scenarios=(CONTROL, scenario), device="cuda", torch_version=(2, 13))
    return sum(type(event.what).__name__ == "Mismatch" for event in facts.trace)


@pytest.mark.parametrize(
    "argument",
    [
        *("SETTINGS.wide", "policy().wide", "self.config.wide", "self.config.get().wide", "given.wide", "given"),
        *("policy()", "SETTINGS", "dtype=SETTINGS.wide", "dtype=policy().wide"),
    ],
)
def test_an_unknown_argument(argument: str) -> None:
    assert conflicts(argument) == 0


@pytest.mark.parametrize("argument", ["x.device", "given.device", "'cuda'", "device=SETTINGS.wide"])
def test_a_known_one(argument: str) -> None:
    assert conflicts(argument) == 1
