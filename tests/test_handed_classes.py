"""Classes that others are handed to build objects of: what those raise before they use them is first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

RULES = select_rules(load_rules(), ("AMP102",), (), ())
FILE = """\
import torch
from torch import nn


class Block(nn.Module):
    expansion = 1

    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x):
        return self.layer(x.float())


class Net(nn.Module):
    def __init__(self, size, block, act=nn.ReLU):
        super().__init__()
        self.first = nn.Linear(size, size)
        self.act = act()
        {made}

    def _make(self, kind, size):
        self.size = size * kind.expansion
        return nn.Sequential(kind(size), kind(size))

    def forward(self, x):
        x = self.first({x})
        return self.blocks(x)
"""
MADE = {
    "itself": "self.blocks = block(size)",
    "in a list": "self.blocks = nn.Sequential(*[block(size) for _ in range(2)])",
    "by a method": "self.blocks = self._make(block, size)",
    "by a method, by keyword": "self.blocks = self._make(kind=block, size=size)",
}
USES = {
    "in a call": "from .nets import Block, Net\n\ndef make(**options):\n    return Net(**dict(options, block=Block))\n",
    "in a table": "from .nets import Block, Net\nBLOCKS, NETS = {'block': Block}, {'net': Net}\n",
    "elsewhere": "from .nets import Block, Net\n\ndef of_name(name):\n    return Block if name == 'block' else Net\n",
}
FIRST, LATER = 28, 13


def told(folder: Path, file: str, use: str) -> list[int]:
    package = folder / "package"
    package.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'package'\n")
    for name, text in {"__init__": "", "nets": file, "use": use}.items():
        (package / f"{name}.py").write_text(text)
    return [finding.span.start.row for finding in check_file(package / "nets.py", Options(RULES)).findings]


def fails(file: str) -> int:
    """The last line of the file that runs before the half model raises."""
    names: dict[str, type[nn.Module]] = {}
    exec(compile(file, "nets.py", "exec"), names)
    net = names["Net"](4, names["Block"]).half()
    with pytest.raises(RuntimeError, match="dtype") as caught:
        net(torch.ones(2, 4, dtype=torch.float16))
    return [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("nets.py")][-1]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made", MADE)
def test_what_is_handed_a_class_raises_before_it_uses_that(made: str, use: str, tmp_path: Path) -> None:
    file = FILE.format(made=MADE[made], x="x.float()")
    assert fails(file) == FIRST
    assert told(tmp_path, file, USES[use]) == [FIRST]


@pytest.mark.parametrize("made", MADE)
def test_a_class_that_others_run_is_told(made: str, tmp_path: Path) -> None:
    file = FILE.format(made=MADE[made], x="x")
    assert fails(file) == LATER
    assert told(tmp_path, file, USES["in a table"]) == [LATER]


@pytest.mark.parametrize(
    "use",
    ["\ndef make():\n    return Block(4)\n", "model = Block(4)\n"],
)
def test_a_class_that_somebody_calls_is_told(use: str, tmp_path: Path) -> None:
    file = FILE.format(made=MADE["itself"], x="x.float()")
    assert told(tmp_path, file, USES["in a table"] + use) == [LATER, FIRST]


def test_a_class_that_no_other_makes_objects_of_is_told(tmp_path: Path) -> None:
    file = FILE.format(made="self.blocks = nn.ReLU()", x="x.float()")
    assert told(tmp_path, file, USES["in a table"]) == [LATER, FIRST]
