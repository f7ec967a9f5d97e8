"""AMP105: how sure an index write is that goes wrong for what a caller is assumed to pass."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP105")


EXPERTS = """\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, index: torch.LongTensor):
        out = torch.zeros_like({like})
        rows = self.proj(x[index])
        out.index_add_(0, index, rows * rows.softmax(-1))
        return out
"""


@pytest.mark.parametrize(("like", "certainty"), [("x", Certainty.POSSIBLE), ("self.proj(x)", Certainty.PROVEN)])
def test_what_autocast_widens_mostly_meets_a_stream_that_is_wide(like: str, certainty: Certainty) -> None:
    source = Source(Path("/project/experts.py"), EXPERTS.format(like=like).encode())
    result = check_file(source, Options(RULES, DEFAULT_SCENARIOS, pedantic=True))
    assert [one.certainty for one in result.findings] == [certainty]


WRITTEN = """\
import torch
from torch import nn


class Columns(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        out = torch.zeros(8, 4)
        for i in torch.arange(4):
            out[:, {index}] = {value}
        return out
"""


@pytest.mark.parametrize(
    ("index", "value", "raises"),
    [
        ("i", "self.proj(x)", False),
        ("x.argmax() % 4", "self.proj(x)", False),
        ("torch.arange(1)", "self.proj(x)[:, None]", True),
        ("torch.where(x > 0)[0][:1]", "self.proj(x)[:, None]", True),
        ("(x > 0).nonzero(as_tuple=True)[0][:1]", "self.proj(x)[:, None]", True),
        ("x.argmax().flatten() % 4", "self.proj(x)[:, None]", True),
        ("x.argmax().view(-1) % 4", "self.proj(x)[:, None]", True),
        ("[0]", "self.proj(x)[:, None]", True),
        ("[k for k in range(2)]", "self.proj(x)[:, None]", True),
    ],
)
def test_an_integer_tensor_without_dimensions_is_a_number(index: str, value: str, raises: bool) -> None:
    source = WRITTEN.format(index=index, value=value)
    module: dict[str, Any] = {}
    exec(source, module)
    with pytest.raises(RuntimeError, match="dtypes match") if raises else nullcontext():
        module["Columns"]().bfloat16()(torch.ones(8).bfloat16())
    found = check_file(Source(Path("columns.py"), source.encode()), Options(RULES, DEFAULT_SCENARIOS)).findings
    assert bool(found) is raises


INVERTED = """\
import torch
from torch import nn


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, given=None):
        m = torch.eye(4, device=x.device) if given is None else self.proj(given)
        rows = {made}
        rows[torch.tensor([0, 1], device=x.device)] = torch.eye(4, device=x.device)[:2]
        return rows
"""


@pytest.mark.parametrize(("made", "count"), [("torch.linalg.inv(m)", 0), ("m * 2", 1)])
def test_what_has_no_kernel_for_low_precision_gives_none(made: str, count: int) -> None:
    source = Source(Path("/project/steps.py"), INVERTED.format(made=made).encode())
    assert len(check_file(source, Options(RULES, DEFAULT_SCENARIOS, pedantic=True)).findings) == count
    names: dict[str, Any] = {}
    exec(INVERTED.format(made=made), names)
    with pytest.raises(RuntimeError, match="Low precision" if count == 0 else "source and destination dtypes"):
        names["Steps"]().to(torch.bfloat16)(torch.ones(2, 4).bfloat16(), torch.ones(4, 4).bfloat16())


@pytest.mark.parametrize(("index", "told"), [("starts + 1", False), ("x > 0", True), ("starts[:2].long()[None]", True)])
def test_an_index_of_which_nothing_is_known_may_be_a_number(index: str, told: bool) -> None:
    source = WRITTEN.format(index=index, value="self.proj(x)").replace("x: torch.Tensor", "x: torch.Tensor, starts")
    found = check_file(Source(Path("columns.py"), source.encode()), Options(RULES, DEFAULT_SCENARIOS)).findings
    assert bool(found) is told
    rows = torch.zeros(8, 4)
    rows[torch.tensor([0, 1])[0] + 1] = torch.ones(4).half()
    assert rows.sum() == 4
