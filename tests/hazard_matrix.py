"""Small modules, each with one hazard of mixed precision or without it: what a run has to confirm, and what not.

Each entry of :data:`HAZARDS` is a function of a :class:`Base`, an input of shape (2, 8, 16) and ``bad``, which chooses
between the hazard and its repaired twin. ``fails`` names the autocast dtypes under which the bad form fails on CUDA, by
the sources of torch; the good form never does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

D = 16
BOTH = ("float16", "bfloat16")
HALF = ("float16",)
BFLOAT = ("bfloat16",)


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(D, D)
        self.k = nn.Linear(D, D)
        self.register_buffer("table", torch.randn(8, D))
        self.codebook = nn.Parameter(torch.randn(D, D))


Body = Callable[[Base, Tensor, bool], Tensor]


@dataclass(frozen=True)
class Hazard:
    name: str
    fails: tuple[str, ...]
    body: Body

    def module(self, bad: bool) -> nn.Module:
        return _Hazardous(self.body, bad)


class _Hazardous(Base):
    def __init__(self, body: Body, bad: bool) -> None:
        super().__init__()
        self.body = body
        self.bad = bad

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self, x, self.bad)


HAZARDS: list[Hazard] = []


def hazard(name: str, fails: tuple[str, ...] = BOTH) -> Callable[[Body], Body]:
    def add(body: Body) -> Body:
        HAZARDS.append(Hazard(name, fails, body))
        return body

    return add


@hazard("attention operands, autocast off in the region")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    q, k = m.q(x), m.k(x)
    with torch.autocast(x.device.type, enabled=False):
        q = q.float() if bad else q
        return F.scaled_dot_product_attention(q, k, k)


@hazard("attention operands, which autocast casts", fails=())
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    q, k = (m.q(x).float() if bad else m.q(x)), m.k(x)
    return F.scaled_dot_product_attention(q, k, k)


@hazard("autocast switched off, operand not cast")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    with torch.autocast("cuda", enabled=False):
        return (h if bad else h.float()) @ m.codebook


@hazard("index write with indices")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    out = torch.zeros_like(x) if bad else torch.zeros_like(h)
    index = torch.tensor([0, 1], device=x.device)
    out[:, index] = h[:, index]
    return out


@hazard("index write with a mask")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    out = torch.zeros_like(x) if bad else torch.zeros_like(h)
    out[torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)] = h.reshape(-1, D)
    return out


@hazard("index_add_")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)[0]
    out = torch.zeros(8, D, device=x.device, dtype=torch.float32 if bad else h.dtype)
    return out.index_add_(0, torch.arange(h.shape[0], device=x.device), h)


@hazard("scatter_")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)[0]
    out = torch.zeros(8, D, device=x.device, dtype=torch.float32 if bad else h.dtype)
    rows = torch.arange(8, device=x.device).flip(0)[:, None].expand(h.shape)
    return out.scatter_(0, rows, h)


@hazard("masked_scatter of embeddings")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    embeddings = m.table[None].expand(2, 8, D)
    return h.masked_scatter(torch.ones_like(h, dtype=torch.bool), embeddings if bad else embeddings.to(h.dtype))


@hazard("lerp of an average")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    return torch.lerp(x if bad else x.to(h.dtype), h, 0.5)


@hazard("mask constant beyond float16", fails=HALF)
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    scores = m.q(x) @ m.k(x).transpose(1, 2)
    future = torch.ones(scores.shape, dtype=torch.bool, device=x.device).triu(1)
    return scores.masked_fill(future, -1e9 if bad else torch.finfo(scores.dtype).min).softmax(-1)


@hazard("squares beyond float16", fails=HALF)
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x * 300) * 50
    return (h * h).float() if bad else h.float().square()


@hazard("epsilon below float16", fails=HALF)
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x) * 0
    return h / (h.abs() + (1e-8 if bad else 1e-4))


@hazard("binary cross entropy")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    target = torch.ones_like(h)
    if bad:
        return F.binary_cross_entropy(h.sigmoid(), target)
    return F.binary_cross_entropy_with_logits(h, target)


@hazard("inverse of a low-precision matrix")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)[:, :1].transpose(1, 2) @ m.k(x)[:, :1]
    h = h + torch.eye(D, device=x.device, dtype=h.dtype) * 3
    return torch.linalg.inv(h if bad else h.float())


@hazard("fft of bfloat16", fails=BFLOAT)
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    return torch.fft.rfft(h if bad else h.float(), dim=-1).abs()


@hazard("cdist, which autocast runs in float32", fails=())
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)
    return torch.cdist(h, h.float() if bad else h)


@hazard("in-place addmm_")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    h = m.q(x)[0]
    out = torch.zeros(h.shape[0], D, device=x.device)
    return out.addmm_(h, m.codebook) if bad else torch.addmm(out, h, m.codebook)


@hazard(".half() beside a promoting operation", fails=BFLOAT)
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    image = m.q(x)[:, None]
    grid = torch.zeros(x.shape[0], 1, 4, 2, device=x.device)
    if bad:
        return F.grid_sample(image.half(), grid.half(), align_corners=False)
    return F.grid_sample(image.float(), grid, align_corners=False)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.transpose(-1, -2) @ grad


class _DecoratedProduct(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.transpose(-1, -2) @ grad


@hazard("autograd Function without custom_bwd")
def _(m: Base, x: Tensor, bad: bool) -> Tensor:
    return (_Product if bad else _DecoratedProduct).apply(x[0], m.codebook)
