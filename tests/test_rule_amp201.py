"""AMP201: what backward does decides whether the missing decorators change anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP201")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
CODE = """\
import torch


class Product(torch.autograd.Function):
    @staticmethod{forward_decorator}
    def forward(ctx, x, weight):
        product = x @ weight
        ctx.save_for_backward(weight, product)
        ctx.down = False
        return product

    @staticmethod{backward_decorator}
    def backward(ctx, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        weight, product = ctx.saved_tensors
        if bool(ctx.down):
            return -grad, None
        return {returned}
"""
NOTHING = (
    *("grad, None", "-grad, torch.zeros_like(weight)", "grad.clone().contiguous(), None", "product.neg(), None"),
    *("grad * product, None", "torch.addcdiv(grad, grad, product + 1), None"),
)
SOMETHING = ("grad @ weight.t(), None", "(grad * product).sum(0), None", "ctx.scaled(grad), None")


@pytest.mark.parametrize(("returned", "count"), [*((r, 0) for r in NOTHING), *((r, 1) for r in SOMETHING)])
def test_backward_that_computes_nothing_of_two_tensors(returned: str, count: int) -> None:
    code = CODE.format(returned=returned, forward_decorator="", backward_decorator="")
    assert len(check_file(Source(Path("/project/product.py"), code.encode()), OPTIONS).findings) == count


@pytest.mark.parametrize("returned", NOTHING)
def test_decorators_change_nothing_in_torch(returned: str) -> None:
    gradients = []
    decorators = [f"\n    @torch.amp.custom_{name}(device_type='cpu')" for name in ("fwd", "bwd")]
    for forward, backward in (("", ""), decorators):
        names: dict[str, type[torch.autograd.Function]] = {}
        exec(CODE.format(returned=returned, forward_decorator=forward, backward_decorator=backward), names)
        x = torch.linspace(0, 1, 16).reshape(4, 4).requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = names["Product"].apply(x, torch.eye(4)).sum()
        loss.backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


LEGACY = """\
import torch


class Product(torch.autograd.Function):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return x @ self.weight

    def backward(self, grad):
        return grad @ self.weight.t()


def product(x: torch.Tensor, weight: torch.Tensor):
    return {called}
"""


def test_a_function_that_is_an_object_is_never_run() -> None:
    code = LEGACY.format(called="Product(weight)(x)")
    assert not check_file(Source(Path("/project/product.py"), code.encode()), OPTIONS).findings
    names: dict[str, Callable[..., object]] = {}
    exec(code, names)
    with pytest.raises(RuntimeError, match="non-static forward"):
        names["product"](torch.ones(2, 2), torch.ones(2, 2))


SCALED = """\
import torch
import torch.nn.functional as F


def kernel(x):
    return torch.ops.own.kernel(x)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, scale):
        y = F.linear(x, weight)
        ctx.save_for_backward(x, weight, y)
        ctx.scale = scale
        return {returned}

    @staticmethod
    def backward(ctx, grad):
        x, weight, y = ctx.saved_tensors
        grad, x, weight = grad.to(y.dtype), x.to(y.dtype), weight.to(y.dtype)
        scaled = ctx.scale * (grad @ weight)
        return torch.addmm(grad @ weight, scaled, weight), grad.t() @ {with_}, {gradient}
"""


@pytest.mark.parametrize(
    ("returned", "with_", "gradient", "codes"),
    [
        ("y * scale", "x", "None", []),
        ("scale / y", "x", "None", []),
        ("y * scale", "kernel(x)", "None", []),
        ("y * scale", "x.float()", "None", ["AMP201", "AMP204"]),
        ("y * scale", "x", "(grad * y).sum()", ["AMP201", "AMP204"]),
        ("y * scale.view(-1)", "x", "None", ["AMP201", "AMP204"]),
        ("y * scale + F.linear(x, scale)", "x", "None", ["AMP201", "AMP204"]),
    ],
)
def test_what_has_no_gradient_and_is_only_multiplied_may_be_a_number(
    returned: str, with_: str, gradient: str, codes: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "scaled.py"
    path.write_text(SCALED.format(returned=returned, with_=with_, gradient=gradient))
    rules = tuple(rule for rule in load_rules() if rule.code in ("AMP201", "AMP204"))
    assert sorted({finding.code for finding in check_file(path, Options(rules)).findings}) == codes
