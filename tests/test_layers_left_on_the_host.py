"""Layers that are made while a model runs lie in the host's memory until something moves them, as torch shows."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        x = self.inner(x)
{used}
"""
LEFT = {
    "a layer": "layer = nn.Linear(4, 4)\nreturn layer(x)",
    "a layer that is called where it is made": "return nn.Linear(4, 4)(x)",
    "a layer in another": "return nn.Sequential(nn.Linear(4, 4), nn.ReLU())(x)",
    "an object": "return Part()(x)",
    "a dtype alone": "return nn.Linear(4, 4).to(torch.float32)(x)",
}
MOVED = {
    "to": "layer = nn.Linear(4, 4).to(x.device)\nreturn layer(x)",
    "in place": "layer = nn.Linear(4, 4)\nlayer.to(x.device)\nreturn layer(x)",
    "as it is made": "return nn.Linear(4, 4, device=x.device)(x)",
    "with others": "return nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to(x.device)(x)",
    "an object": "return Part().to(x.device)(x)",
    "an object in place": "part = Part()\npart.to(device=x.device)\nreturn part(x)",
    "an attribute in place": "self.late = nn.Linear(4, 4)\nself.late.to(x.device)\nreturn self.late(x)",
    "options that are not known": "layer = nn.Linear(4, 4, **dict(device=x.device))\nreturn layer(x)",
}


def text(used: str) -> str:
    return FILE.format(used=textwrap.indent(used, " " * 8))


def told(tmp_path: Path, code: str) -> list[str]:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from .net import Net\n")
    (package / "net.py").write_text(code)
    options = judging_options(Config(), load_rules(), select=["AMP103", "AMP104"])
    return [f.code for f in check_file(package / "net.py", options).findings if "fp16" in f.scenarios]


def net(code: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), names)
    return names["Net"]()


@pytest.mark.parametrize("name", LEFT)
def test_what_nothing_moves_raises_in_float32_too(tmp_path: Path, name: str) -> None:
    code = text(LEFT[name])
    with pytest.raises(RuntimeError, match="device"):
        net(code).to("meta")(torch.ones(2, 4, device="meta"))
    assert told(tmp_path, code) == []


@pytest.mark.parametrize("name", MOVED)
def test_what_is_moved_raises_in_half_alone(tmp_path: Path, name: str) -> None:
    code = text(MOVED[name])
    assert net(code).to("meta")(torch.ones(2, 4, device="meta")).shape == (2, 4)
    with pytest.raises(RuntimeError, match="same dtype"):
        net(code).half()(torch.ones(2, 4, dtype=torch.float16))
    assert told(tmp_path, code) == ["AMP103"]


def test_a_folder_of_a_package_belongs_to_it_without_an_init(tmp_path: Path) -> None:
    inner = tmp_path / "package" / "models"
    inner.mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (inner / "net.py").write_text(text(LEFT["a layer"]))
    options = judging_options(Config(), load_rules(), select=["AMP103", "AMP104"])
    assert check_file(inner / "net.py", options).findings == ()
