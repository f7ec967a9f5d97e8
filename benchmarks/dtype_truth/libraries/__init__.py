"""Libraries whose models can be built small and without downloads."""

from __future__ import annotations

import importlib
from typing import Any

from dtype_truth.libraries.model import Model, NotBuilt

__all__ = ["DEFAULT_MODELS", "Model", "NotBuilt", "all_models", "build", "load"]

DEFAULT_MODELS = {
    "transformers": (
        "llama", "bert", "gpt2", "t5", "vit", "mistral", "whisper", "clip", "mixtral", "gemma", "bloom", "mamba",
    ),
    "timm": ("vit_tiny_patch16_224", "resnet18", "convnext_atto", "swin_tiny_patch4_window7_224", "efficientnet_b0"),
    "diffusers": ("UNet2DConditionModel", "AutoencoderKL", "DiTTransformer2DModel", "FluxTransformer2DModel"),
}  # fmt: skip
"""Libraries and the models that run where none are named."""


def build(library: str, name: str) -> Model:
    """Build a model of a library, or a class of any other package. Raises NotBuilt. Imports the library."""
    model: Model = _module("package_modules" if library not in DEFAULT_MODELS else f"{library}_models").build(name)
    return model


def load(library: str, name: str) -> None:
    """Import what :func:`build` needs, as far as it can be imported.

    To be called before a device is emulated: some packages call the device while they are imported.
    """
    importlib.import_module(library)
    if library not in DEFAULT_MODELS:
        _module("package_modules").imported(name.partition(":")[0])


def all_models(library: str) -> list[str]:
    """Every model that the library knows by name, or every class of layers of any other package. Imports it."""
    if library not in DEFAULT_MODELS:
        return sorted(_module("package_modules").all_models(library))
    return sorted(_module(f"{library}_models").all_models())


def _module(name: str) -> Any:
    return importlib.import_module(f"dtype_truth.libraries.{name}")
