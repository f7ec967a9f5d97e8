"""What a loop trains: a tiny model, its data, an optimizer and a scaler; made the same every time."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS, BATCH, FEATURES, CLASSES = 6, 8, 8, 4
PLAIN, CLIPPED, TINY, SPIKE = "plain", "clipped", "tiny", "spike"
VARIANTS = (PLAIN, CLIPPED, TINY, SPIKE)
"""``clipped``: gradients beyond the norm that is clipped to. ``tiny``: gradients that float16 loses unless they are
scaled. ``spike``: one batch whose gradients overflow, so that the scaler skips its step; float32 goes without it."""
FACTOR = 1e-8
"""What makes gradients tiny; the learning rate makes up for it."""
NORM = 0.05


@dataclass
class Setting:
    """``loss`` takes results and targets; ``norm`` is what gradients are clipped to, None to leave them."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    scale: float
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    norm: float | None


def setting(variant: str, *, mixed: bool) -> Setting:
    """The setting of a variant, for mixed precision or for float32."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, CLASSES))
    batches = [(torch.randn(BATCH, FEATURES), torch.randint(0, CLASSES, (BATCH,))) for _ in range(STEPS)]
    if variant == SPIKE:
        batches[2:3] = [(batches[2][0] * 3e4, batches[2][1])] if mixed else []
    factor = FACTOR if variant == TINY else 1.0
    entropy = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5 / factor)
    scale = 2.0**16 if variant in (TINY, SPIKE) else 2.0**10
    scaler = torch.amp.GradScaler("cuda", init_scale=scale, enabled=mixed)
    return Setting(
        model,
        optimizer,
        scaler,
        scale,
        batches,
        lambda results, targets: entropy(results, targets) * factor,
        NORM if variant == CLIPPED else None,
    )


@contextlib.contextmanager
def in_float32() -> Iterator[None]:
    """Autocast regions and scalers that do nothing, whoever makes them: the same loop in float32."""
    region: Any = torch.autocast.__init__
    scaler: Any = torch.amp.GradScaler.__init__

    def open_region(self: torch.autocast, *args: Any, **kwargs: Any) -> None:
        region(self, *args, **kwargs)
        self._enabled = False

    def make_scaler(self: torch.amp.GradScaler, *args: Any, **kwargs: Any) -> None:
        scaler(self, *args, **kwargs)
        self._enabled = False

    torch.autocast.__init__ = open_region  # type: ignore[method-assign]
    torch.amp.GradScaler.__init__ = make_scaler  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.autocast.__init__ = region  # type: ignore[method-assign]
        torch.amp.GradScaler.__init__ = scaler  # type: ignore[method-assign]
