"""Models of timm by name, with the input size of their own default configuration."""

from __future__ import annotations

from typing import Any

import timm
import torch

from amplint.verify.build import Recipe
from dtype_truth.libraries import Model, NotBuilt

_LARGEST = 40_000_000
"""Parameters, above which a model is not built."""


def all_models() -> list[str]:
    """Every architecture, without weights."""
    return list(timm.list_models())


def build(name: str) -> Model:
    """The model as its name says, on two images."""
    with torch.device("meta"):
        model = timm.create_model(name)
    if sum(parameter.numel() for parameter in model.parameters()) > _LARGEST:
        raise NotBuilt("too large")
    size = tuple(model.default_cfg["input_size"])

    def parts() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        return timm.create_model(name), (torch.randn(2, *size),), {}

    return Model(Recipe(f"timm.create_model({name!r})", 0, parts), type(model), f"{type(model).__name__} on {size}")
