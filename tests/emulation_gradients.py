"""Backward passes, Functions and checkpoints on an emulated device."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from emulation_checks import BF16, DEVICE, FULL, HALF, check, layer, only, raising, region, rows
from torch import nn
from torch.amp import custom_bwd, custom_fwd
from torch.utils.checkpoint import checkpoint


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        SEEN.append((grad.device, torch.zeros(1, device=DEVICE).device, torch.is_autocast_enabled(DEVICE)))
        return grad @ w.t(), x.t() @ grad


class Decorated(Product):
    forward = staticmethod(custom_fwd(Product.forward, device_type=DEVICE))
    backward = staticmethod(custom_bwd(Product.backward, device_type=DEVICE))


class ForTheCpu(Product):
    forward = staticmethod(custom_fwd(Product.forward, device_type="cpu"))
    backward = staticmethod(custom_bwd(Product.backward, device_type="cpu"))


class Casting(Product):
    @staticmethod
    @custom_fwd(device_type=DEVICE, cast_inputs=FULL)
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        SEEN.append((x.dtype, torch.is_autocast_enabled(DEVICE)))
        return Product.forward(ctx, x, w)

    backward = staticmethod(custom_bwd(Product.backward, device_type=DEVICE))


SEEN: list[Any] = []


def product(function: type[torch.autograd.Function], dtype: torch.dtype = FULL) -> torch.Tensor:
    SEEN.clear()
    with region():
        return function.apply(rows(dtype=dtype).requires_grad_(), layer().weight)


@check
def a_plain_function_fails_in_a_backward_pass_outside() -> None:
    out = product(Product)
    assert out.dtype is BF16
    with raising(RuntimeError, "dtype"):
        out.sum().backward()
    with region():
        product(Product).sum().backward()


@check
def decorated_functions_run_backward_as_forward() -> None:
    product(Decorated).sum().backward()
    here = torch.device(DEVICE, 0)
    assert [(here, here, True)] == SEEN
    with raising(RuntimeError, "dtype"):
        product(ForTheCpu).sum().backward()


@check
def inputs_are_cast_and_autocast_is_off_where_asked() -> None:
    out = product(Casting, BF16)
    assert out.dtype is FULL
    assert SEEN == [(FULL, False)]
    out.sum().backward()
    assert SEEN[1][2] is False


@only("cuda")
@check
def the_deprecated_decorators_work() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        class Old(Product):
            forward = staticmethod(torch.cuda.amp.custom_fwd(Product.forward, cast_inputs=HALF))
            backward = staticmethod(torch.cuda.amp.custom_bwd(Product.backward))

        out = product(Old)
        assert out.dtype is HALF
        out.sum().backward()


@check
def checkpoints_recompute_as_they_computed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for reentrant in (True, False):
            linear, drop, seen = layer(), nn.Dropout(0.5), []

            def block(x: torch.Tensor) -> torch.Tensor:
                y = drop(linear(x))  # noqa: B023
                seen.append((y.dtype, x.device, y.detach().clone()))  # noqa: B023
                return y

            with region():
                y = checkpoint(block, rows(16, 4, requires_grad=True), use_reentrant=reentrant)
            torch.randn(3)
            y.float().sum().backward()
            assert [s[:2] for s in seen] == [(BF16, torch.device(DEVICE, 0))] * len(seen)
            if reentrant:
                assert len(seen) == 2
                assert seen[0][2].equal(seen[1][2])


@check
def gradients_of_gradients_exist() -> None:
    x, linear = rows(requires_grad=True), layer()
    with region():
        y = F.gelu(linear(x)).float().square().sum()
    (grad,) = torch.autograd.grad(y, x, create_graph=True)
    assert grad.dtype is FULL
    grad.square().sum().backward()
    assert linear.weight.grad is not None


@check
def hooks_see_the_device() -> None:
    x, seen = rows(requires_grad=True), []
    x.register_hook(lambda grad: seen.append(grad.device))
    (x * 2).sum().backward()
    torch.autograd.grad((x * 2).sum(), x)
    assert seen == [torch.device(DEVICE, 0)] * 2
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t.device, t), lambda packed: packed[1].to(packed[0])):
        y = x.exp().sum()
    y.backward()


@check
def a_training_step_runs() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 1)).to(DEVICE)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=8.0, enabled=DEVICE != "mps")
    before = copy.deepcopy(net.state_dict())
    with region(dtype=HALF):
        loss = net(rows(8, 4)).float().square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimiser)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimiser)
    scaler.update()
    assert not before["0.weight"].equal(net[0].weight)
