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
        ("wide + unknown", [16]),
        ("unknown * wide + self.last.weight", [16]),
        ("torch.cat([unknown, unknown])", [17]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_what_is_at_least_float32_raises_beside_half_weights(both: str, told: list[int], dtype: torch.dtype) -> None:
    """Whatever the operand is that is not known; not where it decides the dtype alone."""
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


OBJECT = """\
import torch
from torch import nn


class Shift:
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return args[0].bfloat16()


class Net(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.given = given
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8)

    def forward(self, index: torch.Tensor):
        wide = torch.zeros(8, 8, device=index.device)
        y = self.first(wide + {operand})
        return y + self.last(wide)
"""


@pytest.mark.parametrize(("operand", "raises"), [("Shift()", 20), ("self.given(index)", 19)])
def test_an_object_decides_what_it_gives_beside_a_tensor(operand: str, raises: int) -> None:
    code = OBJECT.format(operand=operand)
    assert told_in(code) == [raises]
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Net"](lambda _: torch.ones(8, 8, dtype=torch.bfloat16)).to(torch.bfloat16)(torch.arange(3))
    assert [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")] == [raises]


CALLEE = """\
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.ones(8))
        self.enter = nn.Linear(8, 8)
        self.leave = nn.Linear(8, 8)

    def step(self, x: torch.Tensor, cache):
        state, count = cache
        y, state = self.advance(self.enter(x), state)
        return self.leave(y * torch.exp(self.decay.float())), (state, count)

    def advance(self, x, state):
        if state is None:
            state = torch.zeros(x.shape[0], 8, device=x.device)
        state = torch.exp(-self.decay.float()) * state + x
        {use}
        return y, state
"""


@pytest.mark.parametrize(("use", "told"), [("y = state @ self.enter.weight", [21]), ("y = state.to(x.dtype)", [15])])
@pytest.mark.parametrize("given", [None, torch.ones(2, 8), torch.ones(2, 8, dtype=torch.bfloat16)])
def test_what_raises_in_a_callee_whatever_it_is_passed_hides_what_is_behind_it(
    use: str, told: list[int], given: torch.Tensor | None
) -> None:
    code = CALLEE.format(use=use)
    assert told_in(code) == told
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Cell"]().to(torch.bfloat16).step(torch.ones(2, 8, dtype=torch.bfloat16), (given, 0))
    assert [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")][-1:] == told
