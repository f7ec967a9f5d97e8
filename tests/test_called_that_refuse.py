"""Calls that come back in some scenarios only: nothing behind them runs in the others."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import torch

import amplint

if TYPE_CHECKING:
    from torch import nn

CODE = """\
import torch
from torch import nn


def checked(x):
    assert x.dtype == torch.bfloat16
    return x * 2


def either(x):
    if x.dtype == torch.bfloat16:
        return x * 2
    return x


def refusing(x):
    if x.dtype == torch.float16:
        raise TypeError("float16")
    return x * 2


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.no_grad():
            assert x.dtype == torch.bfloat16
            return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def own(self, x):
        return checked(x)

    def forward(self, x):
        x = self.first(x)
{body}
        return self.last(x.float())
"""
REFUSING = {
    "a function": "x = checked(x)",
    "a function that raises": "x = refusing(x)",
    "a method that calls one": "x = self.own(x)",
    "a lambda": "x = (lambda y: checked(y))(x)",
    "an autograd Function": "x = Doubled.apply(x)",
    "twice": "x = checked(checked(x))",
    "in a branch that is always taken": "if x.dtype != torch.int8:\n    x = checked(x)",
}
COMING_BACK = {
    "a function with two returns": "x = either(x)",
    "what is handled": "try:\n    x = checked(x)\nexcept AssertionError:\n    x = x * 2",
    "in a branch": "if len(x) > 100:\n    x = checked(x)",
    "in one arm": "x = checked(x) if len(x) > 100 else x",
    "behind another test": "len(x) > 100 and checked(x)",
}


def fails(body: str, dtype: torch.dtype) -> type[Exception]:
    """The error of the model in a dtype."""
    names: dict[str, Any] = {}
    exec(compile(code(body), "net.py", "exec"), names)
    net: nn.Module = names["Net"]().to(dtype)
    with pytest.raises((RuntimeError, AssertionError, TypeError)) as caught:
        net(torch.ones(2, 4, dtype=dtype))
    return caught.type


def code(body: str) -> str:
    return CODE.format(body=textwrap.indent(body, " " * 8))


def told(body: str) -> set[str]:
    found = amplint.check_source(code(body), select=["AMP102"])
    return {scenario for finding in found for scenario in finding.scenarios}


@pytest.mark.parametrize("name", REFUSING)
def test_what_a_call_refuses_never_gets_behind_it(name: str) -> None:
    assert fails(REFUSING[name], torch.bfloat16) is RuntimeError
    assert fails(REFUSING[name], torch.float16) in (AssertionError, TypeError)
    assert told(REFUSING[name]) == {"bf16", "bf16-mixed-params"}


@pytest.mark.parametrize("name", COMING_BACK)
def test_what_comes_back_on_another_way_does(name: str) -> None:
    assert fails(COMING_BACK[name], torch.bfloat16) is RuntimeError
    assert fails(COMING_BACK[name], torch.float16) is RuntimeError
    assert told(COMING_BACK[name]) == {"fp16", "bf16", "bf16-mixed-params"}
