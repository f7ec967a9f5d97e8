"""What comes behind float32 that goes into something unknown, where the weights are half."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_inference_first_raise import told_in
from torch import nn

CODE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.given, self.other = given, nn.Identity()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, mask):
        wide = torch.ones(8, 8, device=x.device)
        {first}
        return self.layer(wide), first
"""


def run(first: str) -> list[int]:
    """The lines of the code on which torch raises for a backbone in half weights."""
    namespace: dict[str, Any] = {}
    exec(compile(CODE.format(first=first), "net.py", "exec"), namespace)
    net = namespace["Net"](nn.Linear(8, 8)).to(torch.bfloat16)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        net(torch.ones(8, 8, dtype=torch.bfloat16), torch.ones(8, 8, dtype=torch.bool))
    return [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")]


@pytest.mark.parametrize("annotation", ["", ": nn.Module", ": torch.nn.Module"])
@pytest.mark.parametrize("first", ["self.given(wide)", "self.given.forward(wide)[-1]"])
def test_a_module_of_which_only_that_is_known_is_unknown(first: str, annotation: str) -> None:
    code = CODE.format(first=f"first = {first}").replace("given):", f"given{annotation}):")
    assert told_in(code) == []
    assert told_in(code.replace("given(wide)", "given(x)").replace("forward(wide)", "forward(x)")) == [14]


@pytest.mark.parametrize(
    ("first", "raises", "told"),
    [
        ("first = self.given(wide)", 13, []),
        ("first = self.given.forward(wide)", 13, []),
        ("first = torch.mm(wide, self.given(x))", 13, []),
        ("first = torch.mm(wide, self.given(x).relu())", 13, []),
        ("first = self.given(wide * self.given(x))", 13, []),
        ("first = self.given(torch.cat([x, wide * self.given(x)]))", 13, []),
        ("first = torch.mm(wide + self.given(x), self.given(x))", 13, []),
        ("first = self.given(x)", 14, [14]),
        ("first = self.given(wide.to(x.dtype))", 14, [14]),
        ("first = torch.mm(wide.to(x.dtype), self.given(x))", 14, [14]),
        ("first = torch.mul(wide, self.given(x))", 14, [14]),
        ("first = self.given(x) if x is None else self.other(wide)", 14, [14]),
    ],
)
def test_what_is_hardly_reached_is_not_told(first: str, raises: int, told: list[int]) -> None:
    assert run(first) == [raises]
    assert told_in(CODE.format(first=first)) == told


@pytest.mark.parametrize(
    ("write", "raises", "told"),
    [
        ("wide[:, at[:, 0]] = x", 14, [14]),
        ("wide[:, at[:, 0]] = self.given(x)", 14, []),
        ("wide[at[:, 0], 0] = x[:, 0]", 14, [14]),
        ("wide[:, at[:, 0]] = x.float()", 15, [15]),
        ("wide[:, at[0, 0]] = x[:, 0]", 15, [15]),
        ("wide[:, at[:, 0]] = 0.0", 15, [15]),
    ],
)
def test_rows_that_a_tensor_chooses_take_their_own_dtype(write: str, raises: int, told: list[int]) -> None:
    code = CODE.format(first=f"first = x\n        {write}").replace("mask", "at")
    namespace: dict[str, Any] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    net = namespace["Net"](nn.Linear(8, 8)).to(torch.bfloat16)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        net(torch.ones(8, 8, dtype=torch.bfloat16), torch.arange(8)[:, None])
    lines = [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")]
    assert lines == [raises]
    assert told_in(code) == told
