"""What autocast promotes takes float32 and its own 16-bit dtype: on AutocastCUDA's and AutocastCPU's own kernels."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from amplint.engine import Options, check_file
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.infer.state.facts import Mismatch, Refused
from amplint.infer.torch_model.torch_ops import PROMOTE, find_op
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = ("float16", "bfloat16", "float32", "float64")
CALLS = {
    ("cuda", "torch.addcmul(a, b, b)"): "torch.addcmul",
    ("cuda", "torch.addcdiv(b, a, b)"): "torch.addcdiv",
    ("cuda", "torch.atan2(a, b)"): "torch.atan2",
    ("cuda", "torch.cross(a, b, dim=-1)"): "torch.cross",
    ("cuda", "torch.scatter_add(a, 0, index, b)"): "torch.scatter_add",
    ("cpu", "torch.cat([a, b])"): "torch.cat",
    ("cpu", "torch.stack((a, b))"): "torch.stack",
    ("cuda", "torch.cat([a, b])"): "torch.cat",
    ("cuda", "torch.add(a, b)"): "torch.add",
}
CODE = """\
import torch


def run(x: torch.Tensor, index: torch.Tensor):
    a = torch.ones(3, 3, dtype=torch.{a}, device=x.device)
    b = torch.ones(3, 3, dtype=torch.{b}, device=x.device)
    return {call}
"""


def raises(device: str, call: str, a: str, b: str) -> bool:
    """Whether torch's own autocast refuses the operands, in float16."""
    before = torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, torch.float16)
    try:
        with FakeTensorMode():
            made = [torch.ones(3, 3, dtype=getattr(torch, name), device=device) for name in (a, b)]
            index = torch.zeros(3, 3, dtype=torch.int64, device=device)
            eval(call, {"torch": torch, "a": made[0], "b": made[1], "index": index})
    except RuntimeError as error:
        return "prioritize" in str(error)
    finally:
        torch.set_autocast_dtype(device, before)
        torch.set_autocast_enabled(device, False)
    return False


def inferred(device: str, call: str, a: str, b: str) -> bool:
    scenario = find_scenario("autocast-fp16")
    assert scenario is not None
    source = Source(Path("/project/run.py"), CODE.format(call=call, a=a, b=b).encode())
    facts = analyse(source, scenarios=(CONTROL, scenario), device=device, torch_version=(2, 13))
    found = (event.what for event in facts.trace if isinstance(event.what, (Mismatch, Refused)))
    return any(1 in what.lanes and what.lanes == (1,) for what in found)


@pytest.mark.parametrize(("device", "call"), CALLS)
def test_autocast_refuses_the_other_dtype(device: str, call: str) -> None:
    op = find_op(CALLS[device, call])
    assert op is not None
    promotes = op.policy.get(device) == PROMOTE
    for a, b in product(DTYPES, repeat=2):
        refused = raises(device, call, a, b)
        assert promotes or not refused
        if promotes:
            assert inferred(device, call, a, b) == refused, (a, b)


NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        state = torch.{op}(self.inner(x), x.bfloat16(), x.bfloat16())
        return self.inner(x).masked_fill(x > 0, -1e9), state
"""


def found(text: str) -> Iterator[tuple[str, str, int, tuple[str, ...]]]:
    rules = tuple(rule for rule in load_rules() if rule.code in ("AMP104", "AMP301"))
    for finding in check_file(Source(Path("/project/net.py"), text.encode()), Options(rules, pedantic=True)).findings:
        yield finding.code, finding.certainty.value, finding.span.start.row, finding.scenarios


def test_what_it_refuses_is_told_and_hides_what_is_behind() -> None:
    assert [*found(NET.format(op="addcmul"))] == [
        ("AMP104", "proven", 11, ("autocast-fp16",)),
        ("AMP301", "likely", 12, ("fp16",)),
    ]


def test_on_cuda_cat_is_no_business_of_autocast() -> None:
    text = NET.format(op="cat").replace(
        "cat(self.inner(x), x.bfloat16(), x.bfloat16())", "cat([self.inner(x), x.bfloat16()])"
    )
    assert not [each for each in found(text) if each[0] == "AMP104" and "autocast-fp16" in each[3]]
