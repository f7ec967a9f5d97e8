"""Operands of which no more is known than that they are float32 or wider."""

from __future__ import annotations

import pytest
import torch
from test_inference_first_raise import rows_of, told_in
from torch import nn

BOUNDED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.given = given
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8)

    def forward(self, index: torch.Tensor):
        wide = torch.zeros(8, 8, device=index.device)
        unknown = self.given(index)
        both = {both}
        y = self.first(both)
        return y + self.last(wide)
"""


@pytest.mark.parametrize(
    ("both", "told"),
    [
        ("torch.cat([wide, unknown])", [16]),
        ("torch.stack((unknown, wide))[0]", [16]),
        ("torch.where(wide > 0, wide, unknown)", [16]),
        ("torch.mul(wide, unknown)", [16]),
        ("wide / torch.exp(unknown)", [16]),
        ("torch.cat([wide, unknown]).to(wide.dtype)", [16]),
        ("wide.sum() * torch.exp(unknown)", [17]),
        ("wide + unknown", [17]),
        ("torch.cat([unknown, unknown])", [17]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_what_is_at_least_float32_raises_beside_half_weights(both: str, told: list[int], dtype: torch.dtype) -> None:
    """Whatever the operand is that is not known; not where it may be no tensor, or decides the dtype alone."""
    code = BOUNDED.format(both=both)
    assert told_in(code) == told
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    raises = namespace["Net"](lambda _: torch.ones(8, 8, dtype=dtype)).to(torch.bfloat16)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        raises(torch.arange(3))
    if told == [16]:
        assert [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")] == [16]


@pytest.mark.parametrize("both", ["torch.cat([wide, unknown])", "torch.mul(wide, unknown)"])
def test_what_is_at_least_float32_raises_in_a_norm_of_half_weights(both: str) -> None:
    code = BOUNDED.format(both=both).replace("self.first = nn.Linear(8, 8)", "self.first = nn.LayerNorm(8)")
    code = code.replace("y + self.last(wide)", "self.last(y * wide)")
    assert rows_of(code) == [16]
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError) as caught:
        namespace["Net"](lambda _: torch.ones(8, 8, dtype=torch.bfloat16)).to(torch.bfloat16)(torch.arange(3))
    assert [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")] == [16]
