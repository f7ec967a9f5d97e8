"""What attributes hold, and where the project runs it, decide whether code is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP105", "AMP304"), (), ())
HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.first = 1

    def forward(self, x: torch.Tensor):
        found = torch.zeros(4, 4, device=x.device)
        found[torch.arange(4)] = self.linear(x)
        return found

    def sample(self, x):
        return self(x)

    def loss(self, x, y):
        return (x - y).square().mean()
"""
MODEL = """\
import torch
from torch import nn
from .head import Head


class Model(nn.Module):
    def __init__(self, fast=False):
        super().__init__()
        self.trunk = nn.Linear(4, 4)
        self.head = Head()
        {more}

    def forward(self, x):
        x = self.trunk(x)
        {run}
"""
OFF = 'with torch.autocast("cuda", enabled=False):\n            return self.head(x.float())'
SILENT = {
    "in a region that is off": OFF,
    "another method of it": OFF.replace("self.head(", "self.head.sample("),
    "a method that does not lead there": f"self.head.loss(x, x)\n        {OFF}",
    "its parameters": f"print(sum(p.sum() for p in self.head.parameters()))\n        {OFF}",
    "a number of it": f"x = x * self.head.first\n        {OFF}",
    "converted": f"self.head.eval()\n        self.head = self.head.to(x.device)\n        {OFF}",
    "its layers, by one name": f"for part in self.head:\n            [part.first for part in part]\n        {OFF}",
    "where it is compared": f'assert "head.linear".startswith("head") and self.head is not None\n        {OFF}',
    "nowhere": "return x",
}
TOLD = {
    "in no region": "return self.head(x)",
    "one of two": f"self.head(x)\n        {OFF}",
    "another method of it, in none": f"self.head.sample(x)\n        {OFF}",
    "what it has": f"self.head.linear.weight.square().sum().backward()\n        {OFF}",
    "handed on": f"x = torch.utils.checkpoint.checkpoint(self.head, x)\n        {OFF}",
    "its method handed on": f"x = torch.utils.checkpoint.checkpoint(self.head.sample, x)\n        {OFF}",
    "looked up": f'getattr(self, "head")(x)\n        {OFF}',
    "by any name": f'getattr(self, f"he{{x.dim()}}")(x)\n        {OFF}',
    "what gives it back": f"self.head.eval().to(x.device)(x)\n        {OFF}",
    "a list of its layers": f"print([part for part in self.head])\n        {OFF}",
    "in a variable": f"head = self.head\n        head(x)\n        {OFF}",
}
KEPT = {
    "compiled": "if fast:\n            self.head = torch.compile(self.head)",
    "chosen": "self.head = Head() if fast else nn.Identity()",
}


def told(folder: Path, run: str, more: str = "self.more = 1", **others: str) -> bool:
    package = folder / "package"
    package.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'package'\n")
    files = {"__init__": "", "head": HEAD, "model": MODEL.format(run=run, more=more), **others}
    for name, text in files.items():
        compile(text, name, "exec")
        (package / f"{name}.py").write_text(text)
    return bool(check_file(package / "head.py", Options(RULES)).findings)


@pytest.mark.parametrize("run", SILENT.values(), ids=SILENT)
def test_what_an_attribute_holds_is_run_where_the_project_runs_that(run: str, tmp_path: Path) -> None:
    assert not told(tmp_path, run)


@pytest.mark.parametrize("run", TOLD.values(), ids=TOLD)
def test_it_may_be_run_elsewhere(run: str, tmp_path: Path) -> None:
    assert told(tmp_path, run)


@pytest.mark.parametrize("more", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize(("run", "expected"), [(OFF, False), ("return self.head(x)", True)], ids=["off", "on"])
def test_what_is_stored_there_otherwise_is_run_there_too(run: str, more: str, expected: bool, tmp_path: Path) -> None:
    assert told(tmp_path, run, more) == expected


def test_another_file_may_run_it(tmp_path: Path) -> None:
    used = "def use(model, x):\n    return model.head(x)\n"
    assert told(tmp_path, OFF, use=used)


def test_what_gives_the_parts_of_a_module_may_run_each(tmp_path: Path) -> None:
    assert told(tmp_path, "for part in self.children():\n            x = part(x)\n        return x")


def test_a_base_of_another_library_may_run_what_the_class_holds(tmp_path: Path) -> None:
    package = tmp_path / "package"
    assert not told(tmp_path, "return x")
    model = (package / "model.py").read_text()
    (package / "model.py").write_text("from trainers import Base\n" + model.replace("(nn.Module)", "(Base)"))
    assert check_file(package / "head.py", Options(RULES)).findings


def test_a_constructor_runs_what_it_holds(tmp_path: Path) -> None:
    assert told(tmp_path, OFF, "self.size = self.head(torch.zeros(4, 4)).shape")
