"""What a method asks of its object, and nothing in the project gives, keeps a line from being run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from torch import nn

from amplint.engine import Options, check_file
from amplint.infer.torch_model.modules import of_every_module
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP102",), (), ())

BLOCK = """
import pytorch_lightning
import torch
from torch import nn
HEAD

class Block(BASE):
    def __init__(self, given=None):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        INIT

    def METHOD(self, x: torch.Tensor):
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
    head: str = "",
    method: str = "forward",
    **files: str,
) -> bool:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    replaced = {"BASE": base, "INIT": init, "BODY": body, "OTHER": other, "END": end, "HEAD": head, "METHOD": method}
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
        ("scale = x.mean()\n        x = x * self.scale", False),
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


MULTIPLIED = "x = self.linear(x.float())"


@pytest.mark.parametrize(
    ("body", "end", "expected"),
    [
        (MULTIPLIED, "return x * self.scale", False),
        (f"if x.dim() > 2:\n            {MULTIPLIED}", "return x * self.scale", False),
        (f"if x.dim() > 2:\n            {MULTIPLIED}\n            return x", "return x * self.scale", True),
        (MULTIPLIED, "yield x\n        yield x * self.scale", True),
        (MULTIPLIED, "for y in x:\n            x = y * self.scale\n        return x", True),
        (f"for _ in x:\n            {MULTIPLIED}\n            x = x * self.scale", "return x", False),
        (
            f"for _ in x:\n            {MULTIPLIED}\n            if x.dim():\n                break\n"
            "            x = x * self.scale",
            "return x",
            True,
        ),
    ],
)
def test_lines_before_an_attribute_that_nothing_sets(body: str, end: str, expected: bool, tmp_path: Path) -> None:
    assert told(tmp_path, body=body, end=end) is expected


RUN = "pass\n\n    def _run(self, x):\n        return self.linear(x.float())"


@pytest.mark.parametrize(
    ("other", "code", "expected"),
    [
        (RUN, "", False),
        (RUN.replace("pass", "return self._run(torch.ones(4, 4, device='cuda'))"), "", True),
        (RUN, "def use(block, x):\n    return block._run(x)\n", True),
        (RUN, "def use(block, x):\n    return getattr(block, '_run')(x)\n", True),
    ],
)
def test_a_method_that_only_what_fails_calls(other: str, code: str, expected: bool, tmp_path: Path) -> None:
    assert (
        told(tmp_path, body="x = self._run(x)", end="return x * self.scale", other=other, other_file=code) is expected
    )


def test_the_argument_of_a_static_method_is_no_object_of_the_class(tmp_path: Path) -> None:
    static = "@staticmethod\n    def run(linear, x):\n        linear.scale\n        return linear(x.float())"
    assert told(tmp_path, body="pass", end="return self.run(self.linear, x)", other=f"pass\n\n    {static}")


def test_a_module_without_forward(tmp_path: Path) -> None:
    assert not told(tmp_path, body="x = x * self.scale", method="act")


def test_bases_without_attributes(tmp_path: Path) -> None:
    head = "from abc import ABC\nfrom typing import Generic, TypeVar\nT = TypeVar('T')"
    assert not told(tmp_path, base="ABC, nn.Module, Generic[T]", body="x = x * self.scale", head=head)


KIN = "class {}:\n    def use(self):\n        self.scale = 2\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KIN.format("Sibling(Shared)"), False),
        (KIN.format("Mixed") + "class Both(Block, Mixed):\n    pass\n", True),
        (KIN.format("Wide(Block[int])"), True),
    ],
)
def test_an_attribute_that_a_class_of_the_family_sets(code: str, expected: bool, tmp_path: Path) -> None:
    head = "class Shared(nn.Module):\n    pass\n"
    imported = "from .block import Block, Shared\n\n"
    assert told(tmp_path, base="Shared", body="x = x * self.scale", head=head, kin=imported + code) is expected


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


@pytest.mark.parametrize("code", ["block.wide = True\n", "from elsewhere import turn\n\nturn(block, 'wide')\n"])
def test_a_switch_that_another_file_turns_on(code: str, tmp_path: Path) -> None:
    body = SWITCHED.format(test="self.wide")
    assert told(
        tmp_path, init="self.wide = False", body=body, use=f"from .block import Block\n\nblock = Block()\n{code}"
    )


INNER = "return self.linear(x.float())"


@pytest.mark.parametrize(
    ("init", "test", "expected"),
    [
        ("self.on = True", "not self.on", False),
        ("self.on = True", "self.on", True),
        ("self.on = True\n        self.on = bool(given)", "not self.on", True),
        ("self.on = given", "not self.on", True),
        ("self.on: bool\n        self.on = True", "not self.on", False),
        ("self.on, self.off = True, False", "not self.on", True),
        ("self.mode = 'a'", "self.mode == 'b'", False),
        ("self.mode = 'a'", "self.mode == 'a'", True),
        ("self.mode = 'a'", "self.mode != 'a'", False),
        ("self.mode = 'a'", "self.mode in ('b', 'c')", False),
        ("self.mode = 'a'", "self.mode in ('b', 'a')", True),
        ("self.mode = 'a'", "self.mode not in ['a', 'b']", False),
        ("self.mode = 'a'", "self.mode in x.names", True),
        ("self.mode = 'a'", "x.dim() and self.mode == 'b'", False),
        ("self.mode = 'a'", "x.dim() or self.mode == 'b'", True),
        ("self.mode = given", "self.mode == 'b'", True),
        ("self.kept = None", "self.kept is not None", False),
        ("self.kept = None", "self.kept is None", True),
        ("self.kept = 0", "self.kept is not None", True),
        ("self.kept = None\n        self.kept = given", "self.kept is not None", True),
        ("self.kept = None\n        self.register_buffer('kept', given)", "self.kept is not None", True),
        ("self.steps = 0", "self.steps == 1", False),
        ("self.steps = 0\n        self.steps += 1", "self.steps == 1", True),
        ("self.steps = -1", "self.steps != -1", False),
    ],
)
def test_a_test_of_what_is_only_ever_one_constant(init: str, test: str, expected: bool, tmp_path: Path) -> None:
    body = f"if {test}:\n            {INNER}"
    assert told(tmp_path, init=init, body=body, end="return x") is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"if self.on:\n            return x\n        else:\n            {INNER}", False),
        (f"if self.on:\n            {INNER}\n        else:\n            return x", True),
        (f"if self.on:\n            return x\n        {INNER}", False),
        (f"if self.on:\n            raise ValueError\n        {INNER}", False),
        (f"if self.on:\n            x = x * 2\n        {INNER}", True),
        (f"if self.on:\n            x = x * 2\n        else:\n            return x\n        {INNER}", True),
        (f"if not self.on:\n            x = x * 2\n        else:\n            return x\n        {INNER}", False),
        (f"assert not self.on\n        {INNER}", False),
        (f"assert self.on\n        {INNER}", True),
        (f"while not self.on:\n            {INNER}\n        return x", False),
    ],
)
def test_lines_that_a_constant_keeps_from_being_run(body: str, expected: bool, tmp_path: Path) -> None:
    assert told(tmp_path, init="self.on = True", body=body, end="return x") is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def use(block):\n    block.on = False\n", True),
        ("def use(block):\n    block.on = True\n", False),
        ("from .block import Block\n\nclass Wide(Block):\n    on = False\n", True),
        ("from .block import Block\n\nclass Wide(Block):\n    on = True\n", False),
        ("on = False\n", False),
    ],
)
def test_another_file_that_sets_an_attribute_to_a_constant(code: str, expected: bool, tmp_path: Path) -> None:
    body = f"if not self.on:\n            {INNER}"
    assert told(tmp_path, init="self.on = True", body=body, end="return x", other_file=code) is expected


def test_fields_of_a_dataclass_are_arguments_of_its_constructor(tmp_path: Path) -> None:
    head = "from dataclasses import dataclass\n\n@dataclass\nclass Options(nn.Module):\n    on: bool = True\n"
    body = f"if not self.on:\n            {INNER}"
    assert told(tmp_path, base="Options", head=head, init="pass", body=body, end="return x")


def test_every_module_has_what_torchs_has() -> None:
    plain = {name for name in (*dir(nn.Module), *vars(nn.Module())) if not name.startswith("_")}
    assert all(map(of_every_module, plain))
    assert not any(map(of_every_module, ("get_attention_map", "set_scale", "named_scales", "register")))
