"""Libraries whose models can be built small and without downloads."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amplint.verify.build import Recipe

DEFAULT_MODELS = {
    "transformers": (
        "llama", "bert", "gpt2", "t5", "vit", "mistral", "whisper", "clip", "mixtral", "gemma", "bloom", "mamba",
    ),
    "timm": ("vit_tiny_patch16_224", "resnet18", "convnext_atto", "swin_tiny_patch4_window7_224", "efficientnet_b0"),
    "diffusers": ("UNet2DConditionModel", "AutoencoderKL", "DiTTransformer2DModel", "FluxTransformer2DModel"),
}  # fmt: skip
"""Libraries and the models that run where none are named."""


@dataclass(frozen=True)
class Model:
    """A model that was built and has run once. ``how`` says from what; ``cls`` is its class."""

    recipe: Recipe
    cls: type
    how: str


class NotBuilt(Exception):
    """The model cannot be built or run, and why."""


def build(library: str, name: str) -> Model:
    """Build a model of a library. Raises NotBuilt. Imports the library."""
    return _module(library).build(name)  # type: ignore[no-any-return]


def all_models(library: str) -> list[str]:
    """Every model that the library knows by name. Imports the library."""
    return sorted(_module(library).all_models())


def _module(library: str) -> Any:
    return importlib.import_module(f"dtype_truth.libraries.{library}_models")
