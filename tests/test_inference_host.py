"""Autocast of another device does not act on what lies in the host's memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from amplint.annotate.rows import file_dtypes
from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS, find_scenario
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

CODE = """\
import torch


def gram(count, like: torch.Tensor):
    table = {made}
    product = table @ table
    return product
"""


def inferred(made: str, device: str = "cuda") -> tuple[str, ...] | None:
    scenario = find_scenario("autocast-fp16")
    assert scenario is not None
    source = Source(Path("/project/gram.py"), CODE.format(made=made).encode())
    rows = file_dtypes(source, scenarios=(CONTROL, scenario), device=device, torch_version=(2, 13)).rows
    return next(row.dtypes[-1] for row in rows if row.span.start.row == 7)


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        ("torch.randn(count, count)", "float32"),
        ("torch.normal(0, 1, (count, count))", "float32"),
        ("torch.normal(0.0, 1.0, size=(count, count), device=like.device)", "float16"),
        ("torch.normal(like.float(), 1.0)", "float16"),
        ("torch.zeros(count, count, device='cpu')", "float32"),
        ("torch.zeros(count, count, device=None)", "float32"),
        ("torch.zeros_like(torch.ones(3, 3))", "float32"),
        ("torch.ones(count, count).exp().t()", "float32"),
        ("torch.ones(count, count).to(torch.float32)", "float32"),
        ("like.float().cpu()", "float32"),
        ("like.float().to('cpu')[0]", "float32"),
        ("[part for part in like.float().cpu()][0]", "float32"),
        ("torch.from_numpy(count).float()", "float32"),
        ("torch.randn(count, count).cuda()", "float16"),
        ("torch.randn(count, count).to('cuda')", "float16"),
        ("torch.randn(count, count).to(like.device)", "float16"),
        ("torch.randn(count, count, device=like.device)", "float16"),
        ("torch.zeros_like(like.float())", "float16"),
        ("torch.as_tensor(like.float())", "float16"),
        ("torch.as_tensor(like.float().cpu())", "float32"),
        ("torch.from_numpy(count).float().to(like)", "float16"),
        ("torch.ones(count, count) * like.float()", "float32"),
    ],
)
def test_what_is_made_on_no_device_is_not_cast(made: str, dtype: str) -> None:
    assert inferred(made) == (dtype,)
    assert inferred(made, device="cpu") == ("float16",)


def test_torch_leaves_the_host_alone() -> None:
    """CUDA's autocast key is on, whether or not there is such a device."""
    torch.set_autocast_enabled("cuda", True)
    try:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    finally:
        torch.set_autocast_enabled("cuda", False)


MODULE = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        table = torch.ones(4, 4)
        product = table @ table
        return product
"""


def test_what_a_module_makes_of_what_it_makes_lies_on_the_host() -> None:
    scenario = find_scenario("autocast-fp16")
    assert scenario is not None
    source = Source(Path("/project/net.py"), MODULE.encode())
    rows = file_dtypes(source, scenarios=(CONTROL, scenario), device="cuda", torch_version=(2, 13)).rows
    assert {row.dtypes[-1] for row in rows if row.span.start.row == 9} == {("float32",)}


BESIDE = """\
import torch


def fill(x: torch.Tensor, y: torch.Tensor, index: torch.Tensor):
    out = {made}
    {written}
    return out
"""
RULES = tuple(rule for rule in load_rules() if rule.code in ("AMP103", "AMP104", "AMP105"))
AUTOCAST = tuple(scenario for scenario in DEFAULT_SCENARIOS if scenario.autocast)
WRITES = ("out.index_add_(0, index, x @ y)", "out[index.long()] = x @ y", "torch.lerp(out, x @ y, 0.5)")


@pytest.mark.parametrize("written", WRITES)
@pytest.mark.parametrize(
    ("made", "count"), [("torch.zeros(4, 4)", 0), ("x.float().cpu()", 0), ("torch.zeros(4, 4, device=x.device)", 1)]
)
def test_what_meets_the_host_lies_there_too(made: str, count: int, written: str) -> None:
    source = Source(Path("/project/fill.py"), BESIDE.format(made=made, written=written).encode())
    assert len(check_file(source, Options(RULES, AUTOCAST, pedantic=True)).findings) == count


@pytest.mark.parametrize("written", WRITES)
def test_torch_mixes_no_devices(written: str) -> None:
    names: dict[str, Callable[..., object]] = {}
    exec(BESIDE.format(made="torch.zeros(4, 4)", written=written), names)
    with FakeTensorMode():
        x, index = torch.empty(4, 4, device="cuda"), torch.empty(4, device="cuda").long()
        with pytest.raises(RuntimeError, match="device"):
            names["fill"](x, x, index)


FACTOR = """\
import torch


class Filter:
    def __init__(self):
        self.matrix = {made}

    def project(self, state: torch.Tensor):
        wide = state.float()
        product = self.matrix @ wide
        return product
"""


@pytest.mark.parametrize(
    ("made", "dtype"),
    [("torch.eye(4)", "float32"), ("torch.eye(4).cuda()", "float16"), ("torch.tensor(2.0)", "float16")],
)
def test_what_is_multiplied_with_the_host_lies_there_too(made: str, dtype: str) -> None:
    scenario = find_scenario("autocast-fp16")
    assert scenario is not None
    source = Source(Path("/project/filter.py"), FACTOR.format(made=made).encode())
    rows = file_dtypes(source, scenarios=(CONTROL, scenario), device="cuda", torch_version=(2, 13)).rows
    assert next(row.dtypes[-1] for row in rows if row.span.start.row == 11) == (dtype,)


ANGLES = """\
import torch
from torch import nn


class Angles(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rates", 1.0 / 10000 ** torch.linspace(0, 1, 16))

    def forward(self, length: int):
        positions = torch.arange(length, dtype=torch.float32{on})
        angles = torch.einsum("i,j->ij", positions, self.rates)
        return angles.cos(), angles.sin()
"""
ROUNDED_POSITIONS = tuple(rule for rule in load_rules() if rule.code == "AMP306")


@pytest.mark.parametrize(("on", "count"), [("", 0), (", device=self.rates.device", 1)])
def test_positions_on_the_host_beside_a_buffer_are_not_known_to_be_rounded(on: str, count: int) -> None:
    """They follow the default device, or nothing runs."""
    source = Source(Path("/project/angles.py"), ANGLES.format(on=on).encode())
    assert len(check_file(source, Options(ROUNDED_POSITIONS, AUTOCAST, pedantic=True)).findings) == count


def test_what_unknown_numbers_make_of_the_host_lies_there() -> None:
    clamped = "if self.end:\n            positions = positions.clamp(-self.end, self.end)\n        angles ="
    source = Source(Path("/project/angles.py"), ANGLES.format(on="").replace("angles =", clamped, 1).encode())
    assert not check_file(source, Options(ROUNDED_POSITIONS, AUTOCAST, pedantic=True)).findings


FITTED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(size, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)


class Classifier:
    def fit(self, rows):
        self.net = Net(rows.shape[1]){moved}

    def transform(self, rows):
        {region}:
            made = self.net(torch.from_numpy(rows).float(){on})
        return made
"""


@pytest.mark.parametrize(
    ("moved", "on", "region", "dtype"),
    [
        ("", "", "with torch.no_grad()", None),
        ("", ".cuda()", "with torch.no_grad()", "float16"),
        (".cuda()", ".cuda()", "with torch.no_grad()", "float16"),
        ("", "", "with torch.autocast('cuda', dtype=torch.float16)", "float16"),
    ],
)
def test_nobody_casts_what_a_model_gets_from_the_host_where_the_code_opens_no_region(
    moved: str, on: str, region: str, dtype: str | None
) -> None:
    """A model on the device refuses it, and beside one on the host autocast does not act."""
    scenario = find_scenario("autocast-fp16")
    assert scenario is not None
    source = Source(Path("/project/fitted.py"), FITTED.format(moved=moved, on=on, region=region).encode())
    rows = file_dtypes(source, scenarios=(CONTROL, scenario), device="cuda", torch_version=(2, 13)).rows
    made = next(row.dtypes[-1] for row in rows if row.span.start.row == 20)
    assert made == ((dtype,) if dtype else None)
