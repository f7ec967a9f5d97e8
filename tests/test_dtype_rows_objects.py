"""What ``amplint dtypes`` says of programs whose dtypes hang on objects: layers, configurations, lists, annotations."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """\
import math
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from elsewhere import something
"""


def dtypes_of(
    tmp_path: Path, program: str, expression: str, scenario: str = "bf16", device: str = "cpu"
) -> tuple[str, ...] | None:
    """The dtypes of the first expression that is spelled so."""
    path = tmp_path / "program.py"
    path.write_text(HEADER + program, encoding="utf-8")
    found = find_scenario(scenario)
    assert found is not None
    source = Source(path, path.read_bytes())
    rows = file_dtypes(source, scenarios=(CONTROL, found), device=device, torch_version=(2, 13)).rows
    for row in rows:
        start, end = row.span.start, row.span.end
        line = source.lines[start.row - 1]
        if start.row == end.row and line[start.column - 1 : end.column - 1] == expression:
            return row.dtypes[1]
    raise AssertionError(f"no row for {expression}")


def module(forward: str, constructor: str = "pass", signature: str = "x: torch.Tensor") -> str:
    """A module with a body each for its constructor and its forward."""
    return (
        "class Model(nn.Module):\n    def __init__(self, config, dim: int):\n        super().__init__()\n"
        f"{indent(constructor, ' ' * 8)}\n    def forward(self, {signature}):\n{indent(forward, ' ' * 8)}\n"
    )


@pytest.mark.parametrize(
    ("constructor", "call"),
    [
        ("self.layer = nn.Linear(dim, dim)", "self.layer(something(x))"),
        ("self.layer = nn.Conv1d(dim, dim, 3)", "self.layer(something(x))"),
        ("self.weight = nn.Parameter(torch.ones(4, 4))", "torch.matmul(something(x), self.weight)"),
    ],
)
def test_an_operand_that_is_not_known_has_the_dtype_that_the_operation_asks_for(
    tmp_path: Path, constructor: str, call: str
) -> None:
    assert dtypes_of(tmp_path, module(f"return {call}", constructor), call) == ("bfloat16",)


def test_an_operation_that_promotes_says_nothing_of_an_operand_that_is_not_known(tmp_path: Path) -> None:
    program = module("return something(x) + self.weight", "self.weight = nn.Parameter(torch.ones(4))")
    assert dtypes_of(tmp_path, program, "something(x) + self.weight") is None


def test_a_layer_that_takes_no_integers_refutes_an_annotation_that_says_so(tmp_path: Path) -> None:
    program = module("return self.layer(x)", "self.layer = nn.Conv1d(dim, dim, 3)", "x: torch.LongTensor")
    assert dtypes_of(tmp_path, program, "self.layer(x)") == ("bfloat16",)


NORM = """\
class Norm(nn.Module):
    def __init__(self, dim, {parameter}):
        super().__init__()
        self.eps = eps
    def forward(self, x):
        return x.float() * self.eps
"""


@pytest.mark.parametrize(
    ("parameter", "dtypes"), [("eps=1e-6", ("float32",)), ("eps: float", ("float32",)), ("eps", None)]
)
def test_a_parameter_is_a_number_by_its_annotation_or_default(
    tmp_path: Path, parameter: str, dtypes: tuple[str, ...] | None
) -> None:
    program = NORM.format(parameter=parameter) + module("return self.norm(x)", "self.norm = Norm(dim, eps=config.eps)")
    assert dtypes_of(tmp_path, program, "x.float() * self.eps") == dtypes


@pytest.mark.parametrize("number", ["math.pi", "np.pi", "torch.pi", "np.log(2.0)", "np.sqrt(dim)"])
def test_constants_of_libraries_are_numbers(tmp_path: Path, number: str) -> None:
    program = module(f"return x.half() * {number}", signature="x: torch.Tensor, dim: int = 4")
    assert dtypes_of(tmp_path, program, f"x.half() * {number}") == ("float16",)


OUT = """\
if config.last:
    self.out = None
else:
    self.out = nn.ModuleList([])
    self.out.append({first})
    self.out.append(nn.Linear(dim, dim))
"""


def test_a_list_made_and_filled_in_one_branch_keeps_its_items(tmp_path: Path) -> None:
    program = module("x = x.half()\nreturn self.out[0](x)", OUT.format(first="nn.Identity()"))
    assert dtypes_of(tmp_path, program, "self.out[0](x)") == ("float16",)


def test_a_list_filled_in_another_branch_than_it_was_made_in_does_not(tmp_path: Path) -> None:
    made = "self.out = nn.ModuleList([])\nif config.first:\n    self.out.append(nn.Identity())\n"
    program = module("x = x.half()\nreturn self.out[0](x)", made + "self.out.append(nn.Embedding(4, 4))")
    assert dtypes_of(tmp_path, program, "self.out[0](x)") != ("float16",)


def test_keywords_picked_out_of_none_are_none(tmp_path: Path) -> None:
    program = """\
class Processor:
    def __call__(self, model, x, extra=None):
        if extra is not None:
            x = something(x, extra)
        return x + x
""" + module(
        "kwargs = {k: v for k, v in kwargs.items() if k in self.known}\nreturn self.processor(self, x, **kwargs)",
        "self.processor = Processor()",
        "x: torch.Tensor, **kwargs",
    )
    program += "class User(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    program += (
        "        self.model = Model(None, 4)\n    def forward(self, x: torch.Tensor):\n        return self.model(x)\n"
    )
    assert dtypes_of(tmp_path, program, "x + x") == ("bfloat16",)


def test_an_object_under_construction_has_no_attribute_that_nothing_set(tmp_path: Path) -> None:
    constructor = "made = torch.ones(4)\nif hasattr(self, 'kept'):\n    made = something(made)\nself.kept = made * 2"
    assert dtypes_of(tmp_path, module("return x", constructor), "made * 2") == ("float32",)


@pytest.mark.parametrize(
    "demand",
    ["if not hasattr(self, 'kept') or self.kept is None:\n    raise RuntimeError", "assert hasattr(self, 'kept')"],
)
def test_an_attribute_that_the_constructor_demands_is_set_by_subclasses(tmp_path: Path, demand: str) -> None:
    program = module("return self.made * 2", f"{demand}\nself.made = torch.ones(4)")
    assert dtypes_of(tmp_path, program, "self.made * 2") == ("float32",)


def test_tuples_hold_what_their_annotation_says(tmp_path: Path) -> None:
    program = module("cos, sin = pair\nreturn cos * 2", signature="pair: tuple[torch.Tensor, torch.Tensor]")
    assert dtypes_of(tmp_path, program, "cos * 2") == ("bfloat16",)


def test_nothing_follows_an_assertion_that_fails(tmp_path: Path) -> None:
    forward = "if x.shape[0]:\n    y = x.half()\nelse:\n    assert False\n    y = x.double()\nreturn y * 2"
    assert dtypes_of(tmp_path, module(forward), "y * 2") == ("float16",)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("LongTensor | None", ("int64",)),
        ("Union[torch.LongTensor, torch.IntTensor]", ("int64",)),
        ("Int['b t'] | Int['b t a']", ("int64",)),
        ("torch.Tensor", ("bfloat16",)),
        ("Optional[Bool['b t']]", ("bool",)),
    ],
)
def test_an_annotation_says_more_than_what_a_caller_may_have(
    tmp_path: Path, annotation: str, expected: tuple[str, ...] | None
) -> None:
    program = module("return self.scored(picked)", signature="x: torch.Tensor, picked")
    program += f"\n    def scored(self, picked: {annotation} = None):\n        return picked.sort()[0]\n"
    assert dtypes_of(tmp_path, program, "picked.sort()[0]") == expected


@pytest.mark.parametrize(
    ("base", "registering", "expected"),
    [
        ("nn.Module", "self.register_buffer('table', torch.zeros(4))", ("bfloat16",)),
        ("something.Base", "self.register_buffer('table', torch.zeros(4))", ("bfloat16",)),
        ("something.Base", "self.register_parameter('table', nn.Parameter(torch.zeros(4)))", ("bfloat16",)),
        ("something.Base", "self.table = torch.zeros(4)", ("float32",)),
    ],
)
def test_what_registers_buffers_is_a_module(
    tmp_path: Path, base: str, registering: str, expected: tuple[str, ...]
) -> None:
    program = f"class Held({base}):\n    def __init__(self):\n        super().__init__()\n        {registering}\n\n\n"
    program += module("return self.held.table * 2", "self.held = held").replace("config, dim: int", "held: Held")
    assert dtypes_of(tmp_path, program, "self.held.table * 2") == expected


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("something.Base", ("float32",)),
        ("nn.Module", ("bfloat16",)),
        ("pl.LightningModule", ("bfloat16",)),
        ("LightningModule", ("bfloat16",)),
    ],
)
def test_lightning_modules_are_modules_without_a_forward(tmp_path: Path, base: str, expected: tuple[str, ...]) -> None:
    program = (
        "import pytorch_lightning as pl\nfrom lightning.pytorch import LightningModule\n\n\n"
        f"class Held({base}):\n    def __init__(self):\n        super().__init__()\n"
        "        self.table = nn.Parameter(torch.zeros(4))\n\n    def training_step(self, batch, index):\n"
        "        return self.table * 2\n"
    )
    assert dtypes_of(tmp_path, program, "self.table * 2") == expected


PRICES = """\
class Prices(nn.Module):
    def forward(self, x):
        return self.valued(torch.arange(4, dtype=torch.float32) * 2, x)


class Market(Prices):
    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.ones(4))

    def valued(self, steps, x):
        y = steps * 3
        return y * self.rate

    def told(self, steps):
        z = steps * 5
        return z
"""


def test_an_inherited_forward_decides_what_methods_get(tmp_path: Path) -> None:
    assert dtypes_of(tmp_path, PRICES, "steps * 3") == ("float32",)
    assert dtypes_of(tmp_path, PRICES, "steps * 5") != ("float32",), "nothing but a user calls it"
