"""``assert_autocast_safe``: says what is unsafe and where, and leaves everything in this process as it was."""

from __future__ import annotations

import copy
import importlib.util
import json
import random
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
import torch
from conftest import amplint
from torch import nn

from amplint.testing import assert_autocast_safe
from amplint.verify.quoted import HEADING

if TYPE_CHECKING:
    from pathlib import Path


pytest_plugins = ["pytester"]

BLOCKS = """\
import torch
from torch import nn


class Written(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        y = self.proj(x)
        table = torch.zeros(4, 8)
        table.index_add_(0, torch.arange(4), y)
        return table


class Hidden(Written):
    def __init__(self):
        super().__init__()
        self.table = eval("torch.ones(8, 8)")

    def forward(self, x):
        return getattr(torch, 'm' + 'm')(x, self.table)


class Picked(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)

    def forward(self, x, keys=False):
        table = torch.eye(8)
        if keys:
            return x + self.key(table)
        return x + self.query(table)
"""


class Safe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        self.calls += 1
        y: torch.Tensor = self.proj(x) * scale
        return y


class Upcast(Safe):
    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        y: torch.Tensor = self.proj(x.float())
        return y


class Explicit(Safe):
    """Fails only where it is constructed in low precision: then its table keeps float32."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(8, 8, dtype=torch.float32))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return torch.mm(x, self.table)


def state() -> list[Any]:
    """What a run could leave changed in this process."""
    return [
        torch.get_rng_state().tolist(),
        random.getstate(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        torch.cuda.is_available,
        torch.cuda.get_device_capability,
        torch.autocast,
        torch.is_autocast_enabled,
    ]


def contents(module: nn.Module, x: torch.Tensor) -> list[Any]:
    parameters = [(name, p.detach().clone(), p.dtype, p.requires_grad) for name, p in module.named_parameters()]
    buffers = [(name, b.clone(), b.dtype) for name, b in module.named_buffers()]
    gradients = [None if p.grad is None else p.grad.clone() for p in module.parameters()]
    return [parameters, buffers, gradients, module.training, x.detach().clone(), x.grad, x.requires_grad, x.dtype]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", [Safe, Upcast])
def test_module_inputs_and_this_process_are_as_before(kind: type[Safe], training: bool) -> None:
    module, x = kind().train(training), torch.randn(2, 8, requires_grad=True)
    module(x).sum().backward()
    with torch.no_grad():
        x.grad = None
    before, inside = state(), copy.deepcopy(contents(module, x.detach()))
    try:
        assert_autocast_safe(module, x, scenarios=["bf16", "autocast-fp16"])
    except AssertionError:
        assert kind is Upcast
    assert state() == before
    assert same(contents(module, x.detach()), inside)
    assert x.grad is None
    assert x.requires_grad


def test_a_safe_module_passes_every_scenario() -> None:
    assert_autocast_safe(Safe(), torch.randn(2, 8), scale=2.0)


def test_inputs_may_come_from_other_layers() -> None:
    assert_autocast_safe(Safe(), nn.Linear(8, 8)(torch.randn(2, 8)), scenarios=["bf16"])


def test_an_unsafe_one_says_where_it_fails_and_how() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_autocast_safe(Upcast(), torch.randn(2, 8))
    lines = str(raised.value).splitlines()
    assert lines[0] == "not safe in mixed precision:"
    line = Upcast.forward.__code__.co_firstlineno + 1
    cells = []
    for text in lines[1:-2]:
        assert "mat1 and mat2 must have the same dtype" in text
        assert f"test_testing.py:{line} " in text
        cells.append(text.partition(": ")[0].strip())
    assert lines[-2] == HEADING
    assert lines[-1].endswith(f"test_testing.py:{line}: y: torch.Tensor = self.proj(x.float())")
    modes = ("train", "eval", "eval-no-grad")
    assert cells == [f"{scenario}, {mode}" for scenario in ("fp16", "bf16") for mode in modes]


def test_the_rule_is_the_one_that_check_names_there(tmp_path: Path) -> None:
    """At the line that failed, in the scenario that failed; where check is silent, the family of the error.

    A finding that names several lines is told at each.
    """
    path = tmp_path / "blocks.py"
    path.write_text(BLOCKS)
    found = json.loads(amplint("check", "--isolated", "--output-format", "json", "--exit-zero", str(path)).stdout)
    places = [(place, finding["code"]) for finding in found for place in (finding, *finding["also"])]
    by_row = {place["location"]["row"]: code for place, code in places}
    spec = importlib.util.spec_from_file_location("blocks", path)
    assert spec is not None
    assert spec.loader is not None
    blocks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(blocks)
    told = {}
    for name in ("Written", "Hidden", "Picked"):
        with pytest.raises(AssertionError) as raised:
            assert_autocast_safe(getattr(blocks, name)(), torch.randn(4, 8), scenarios=["bf16"])
        text = str(raised.value).splitlines()
        row = int(re.findall(r"blocks\.py:(\d+)", text[1])[0])
        told[name] = (by_row.get(row), re.findall(r"\[(AMP\d+)\]$", text[1]), text[-1])
    checked, (code,), _ = told["Written"]
    assert checked == code == "AMP105"
    checked, (code,), last = told["Picked"]
    assert checked == code == "AMP103"
    assert last.endswith("return x + self.query(table)")
    checked, codes, last = told["Hidden"]
    assert checked is None
    assert codes
    assert last.endswith("return getattr(torch, 'm' + 'm')(x, self.table)")


def test_pytest_shows_the_lines_of_the_users_module(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        blocks=BLOCKS,
        test_own="import torch\nfrom blocks import Written\nfrom amplint.testing import assert_autocast_safe\n\n"
        "def test_written():\n    assert_autocast_safe(Written(), torch.randn(4, 8), scenarios=['bf16'])\n",
    )
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert_autocast_safe(Written(), *", f"*{HEADING}", "*blocks.py:*: *index_add_*"])
    result.stdout.no_fnmatch_line("*amplint/testing.py*")


def test_only_the_scenarios_asked_for_run() -> None:
    assert_autocast_safe(Upcast(), torch.randn(2, 8), scenarios=["16-mixed", "autocast-bf16"])
    with pytest.raises(AssertionError, match="fsdp-bf16, eval:"):
        assert_autocast_safe(Upcast(), torch.randn(2, 8), scenarios=["fsdp-bf16"])


def test_the_policy_is_that_of_the_device_asked_for() -> None:
    """CUDA's autocast computes a softmax in float32, the CPU's does not."""

    class Gathers(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            low = torch.mm(x, x)
            return low.index_add(0, torch.arange(8), low).index_add_(0, torch.arange(8), low.softmax(0))

    assert_autocast_safe(Gathers(), torch.randn(8, 8), scenarios=["autocast-bf16"], device="cpu")
    with pytest.raises(AssertionError, match="autocast-bf16"):
        assert_autocast_safe(Gathers(), torch.randn(8, 8), scenarios=["autocast-bf16"], device="cuda")


def test_an_example_is_constructed_anew_for_every_scenario() -> None:
    def example() -> Any:
        return Explicit(), (torch.randn(2, 8),), {}

    assert_autocast_safe(Explicit(), torch.randn(2, 8))
    with pytest.raises(AssertionError, match="bf16-mixed-params"):
        assert_autocast_safe(example=example)
    assert_autocast_safe(example=lambda: (Safe(), (torch.randn(2, 8),), {}), scenarios=["bf16-mixed-params"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give a module with its inputs, or example="),
        ({"module": Safe(), "example": lambda: None}, "give a module with its inputs, or example="),
        ({"module": Safe(), "scenarios": ["bf61"]}, "unknown scenario 'bf61'; known: fp32, "),
        ({"module": Safe(), "scenarios": ["bf16-mixed-params"]}, "pass example= instead of a module"),
        ({"module": Safe(), "device": "tpu"}, "unknown device 'tpu'; known: cuda, cpu"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], said: str) -> None:
    module = arguments.pop("module", None)
    inputs = (torch.randn(2, 8),) if module is not None else ()
    with pytest.raises(ValueError, match=said):
        assert_autocast_safe(module, *inputs, **arguments)


def test_what_fails_in_float32_is_not_called_unsafe() -> None:
    with pytest.raises(ValueError, match="fails in float32 too"):
        assert_autocast_safe(Safe(), torch.randn(2, 9))


class Ends(Safe):
    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        import os

        os._exit(0)


class Hangs(Safe):
    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        while True:
            pass


@pytest.mark.parametrize("kind", [Hangs, Ends])
def test_a_module_that_hangs_or_ends_the_process_does_neither_here(kind: type[Safe]) -> None:
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="ended early or took longer than 2 s"):
        assert_autocast_safe(kind(), torch.randn(2, 8), timeout=2)
    assert time.monotonic() - start < 15
