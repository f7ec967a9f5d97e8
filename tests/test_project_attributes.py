"""What a method asks of its object, and nothing in the project gives, keeps a line from being run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP102",), (), ())

BLOCK = """
import pytorch_lightning
import torch
from torch import nn

class Block(BASE):
    def __init__(self, given=None):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        INIT

    def forward(self, x: torch.Tensor):
        BODY
        END

    def other(self):
        OTHER
"""


def told(
    folder: Path,
    *,
    base: str = "nn.Module",
    init: str = "pass",
    body: str,
    other: str = "pass",
    end: str = "return self.linear(x.float())",
    **files: str,
) -> bool:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    replaced = {"BASE": base, "INIT": init, "BODY": body, "OTHER": other, "END": end}
    code = BLOCK
    for word, text in replaced.items():
        code = code.replace(word, text)
    path = package / "block.py"
    path.write_text(code)
    return bool(check_file(path, Options(RULES)).findings)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = x * self.scale", False),
        ("if self.training:\n            x = x * 2", True),
        ("if x.dim() > 2:\n            x = x * self.scale", True),
        ("if x.dim() > 2 and self.scale:\n            x = x * 2", True),
        ("for _ in range(self.scale):\n            x = x * 2", False),
        ("x = x * self.scale if x.dim() > 2 else x", True),
        ("change = lambda: self.scale", True),
        ("try:\n            x = x * self.scale\n        except AttributeError:\n            pass", True),
        ("x = self.other() or x", True),
        ("self.to(x.device)", True),
    ],
)
def test_an_attribute_that_nothing_sets(body: str, expected: bool, tmp_path: Path) -> None:
    assert told(tmp_path, body=body) is expected


@pytest.mark.parametrize(
    ("init", "other"),
    [
        ("self.scale = 2", "pass"),
        ("pass", "self.scale = 2"),
        ("self.register_buffer('scale', torch.ones(4))", "pass"),
        ("setattr(self, given, 2)", "pass"),
        ("self.__dict__.update(given)", "pass"),
    ],
)
def test_an_attribute_that_the_class_sets(init: str, other: str, tmp_path: Path) -> None:
    assert told(tmp_path, body="x = x * self.scale", init=init, other=other)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from .block import Block\n\nclass Wide(Block):\n    scale = 2\n", True),
        ("from .block import Block\n\nclass Wide(Block):\n    def use(self):\n        self.scale = 2\n", True),
        ("from .block import Block\n\nblock = Block()\nblock.scale = 2\n", True),
        ("class Other:\n    def use(self):\n        self.scale = 2\n", False),
        ("def rescale(x, scale):\n    return x * scale\n", False),
    ],
)
def test_an_attribute_that_another_file_sets(code: str, expected: bool, tmp_path: Path) -> None:
    assert told(tmp_path, body="x = x * self.scale", other_file=code) is expected


def test_a_base_of_another_library_may_set_anything(tmp_path: Path) -> None:
    assert told(tmp_path, base="pytorch_lightning.LightningModule", body="x = x * self.scale")


SWITCHED = "if {test}:\n            return self.linear(x.float())"


@pytest.mark.parametrize(
    ("init", "test", "expected"),
    [
        ("self.wide = False", "self.wide", False),
        ("self.wide = None", "self.wide and x.dim() > 2", False),
        ("self.wide: bool = False", "self.wide", False),
        ("self.wide = False", "self.wide or x.dim() > 2", True),
        ("self.wide = False", "not self.wide", True),
        ("self.wide = True", "self.wide", True),
        ("self.wide = given", "self.wide", True),
        ("pass", "self.training", True),
    ],
)
def test_a_switch_that_nothing_turns_on(init: str, test: str, expected: bool, tmp_path: Path) -> None:
    body = SWITCHED.format(test=test)
    assert told(tmp_path, init=init, body=body, end="return self.linear(x)") is expected


@pytest.mark.parametrize("code", ["block.wide = True\n", "turn(block, 'wide')\n"])
def test_a_switch_that_another_file_turns_on(code: str, tmp_path: Path) -> None:
    body = SWITCHED.format(test="self.wide")
    assert told(
        tmp_path, init="self.wide = False", body=body, use=f"from .block import Block\n\nblock = Block()\n{code}"
    )
