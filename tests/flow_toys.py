"""Small programs with a dtype event on the line that a comment names.  Run as a script: under emulated CUDA."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable


def row(mark: str) -> int:
    """The line of this file that ends with the comment ``# mark``."""
    lines = Path(__file__).read_text().splitlines()
    (found,) = (i for i, line in enumerate(lines, 1) if line.endswith(f"  # {mark}"))
    return found


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("table", torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.linear(x)  # linear
        h = h + self.table  # buffer
        h = h.to(torch.bfloat16)  # to
        w = torch.softmax(h, -1, dtype=torch.float32)  # softmax
        return x + (h * w.bfloat16())  # residual


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad  # function backward


def residual() -> None:
    module, x = Residual(), torch.randn(4, 8, requires_grad=True)
    with low():
        y = module(x)
    y.sum().backward()


def index_write() -> None:
    cache, linear = torch.zeros(4, 8), nn.Linear(8, 8)
    with low():
        cache[torch.arange(4)] = linear(torch.randn(4, 8)).detach()  # index_put_


def in_place_matmul() -> None:
    out, x = torch.zeros(4, 4), torch.randn(4, 4)
    with low():
        y = x @ x
        out.addmm_(y, x)  # addmm_


def undecorated_function() -> None:
    linear, weight = nn.Linear(8, 8), torch.randn(8, 8, requires_grad=True)
    with low():
        y = Double.apply(linear(torch.randn(4, 8)), weight)
    y.float().sum().backward()


def above_dispatch() -> None:
    q, k = torch.randn(1, 1, 4, 8), torch.randn(1, 1, 4, 8).double()
    F.scaled_dot_product_attention(q, k, q)  # attention


def caught() -> None:
    x = torch.randn(4, 4)
    with contextlib.suppress(RuntimeError):
        x @ x.double()
    (x @ x).sum()


def overflow() -> None:
    x = torch.full((4, 4), 300.0, dtype=torch.float16)
    y = x + 1
    z = y * y  # overflow
    (z - z).sum()


def in_place_overflow() -> None:
    x = torch.full((4, 4), 300.0, dtype=torch.float16)
    x.mul_(x.clone())  # in place overflow


def undefined() -> None:
    x = torch.zeros(4)
    x / x  # undefined


def masks() -> None:
    scores = torch.randn(4, 4, dtype=torch.float16)
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    bias = torch.zeros(4, 4).masked_fill(causal, float("-inf"))
    torch.softmax(scores.masked_fill(causal, float("-inf")), -1)
    torch.softmax(torch.where(causal, float("-inf"), scores), -1)
    torch.softmax(scores + torch.full((4, 4), float("-inf")).triu(1).half(), -1)
    torch.softmax(scores + bias.half(), -1)
    torch.zeros(4).log()
    torch.empty(64, dtype=torch.float16).new_empty(3)


def mask_constant() -> None:
    bias = torch.zeros(4, 4).masked_fill(torch.ones(4, 4, dtype=torch.bool).triu(1), -1e9)
    (torch.randn(4, 4, dtype=torch.float16) + bias.half()).softmax(-1)  # mask constant


def dropout() -> None:
    x = torch.full((64, 64), 6e4, dtype=torch.float16)
    F.dropout(x, 0.5)  # dropout


TOYS: dict[str, Callable[[], None]] = {
    toy.__name__: toy
    for toy in (
        *(residual, index_write, in_place_matmul, undecorated_function, above_dispatch, caught),
        *(overflow, in_place_overflow, undefined, masks, mask_constant, dropout),
    )
}
EMULATED = __name__ == "__main__"


def low() -> torch.autocast:
    """bfloat16 autocast, the CPU's own or CUDA's."""
    return torch.autocast("cuda" if EMULATED else "cpu", dtype=torch.bfloat16)


if EMULATED:
    from amplint.emulation import emulated
    from amplint.verify.flow import DtypeFlow

    torch.set_num_threads(1)
    results = {}
    for name, toy in TOYS.items():
        with emulated("cuda"), contextlib.suppress(RuntimeError), DtypeFlow() as flow:
            toy()
        results[name] = {**flow.to_json(), "unseen": flow.unseen}
    json.dump(results, sys.stdout)
