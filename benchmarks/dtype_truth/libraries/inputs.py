"""Inputs for a model of transformers by the names of its forward's arguments and by its configuration."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from dtype_truth.libraries.shrink import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH, LENGTH = 2, 8
GRID = 4
"""Patches along each side of an image that is given as a list of patches."""

_MISMATCH = re.compile(r"tokens: (\d+), features:? (\d+)")
_IMAGES = ("pixel_values", "input_features", "input_values")


@dataclass(frozen=True)
class Inputs:
    """Which arguments to give. Each :meth:`make` gives fresh tensors with the same values.

    ``form`` chooses between the shapes that images and spectrograms are given in; ``image_tokens`` is how many tokens
    of each text stand for an image.
    """

    names: tuple[str, ...]
    config: Any
    form: int = 0
    image_tokens: int = 0

    def make(self) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(0)
        given = {name: self._value(name, generator) for name in self.names}
        return {name: value for name, value in given.items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {tuple(value.shape)}" for name, value in self.make().items())

    def _value(self, name: str, generator: torch.Generator) -> torch.Tensor | None:
        if name.endswith("input_ids"):
            return self._tokens(generator, self.image_tokens if name == "input_ids" else 0)
        if name.endswith("attention_mask"):
            mask = torch.ones(BATCH, LENGTH + self.image_tokens, dtype=torch.long)
            mask[-1, -2:] = 0
            return mask
        if name in ("token_type_ids", "mm_token_type_ids"):
            return torch.zeros(BATCH, LENGTH + self.image_tokens, dtype=torch.long)
        if name.startswith("pixel_values"):
            return self._image("video" in name, generator)
        if name == "image_grid_thw":
            return torch.tensor([[1, GRID, GRID]] * BATCH) if self.form == PATCHES else None
        if name == "input_features":
            mel = _find(self.config, "num_mel_bins", _find(self.config, "feature_size", 80))
            frames = 2 * _find(self.config, "max_source_positions", 32)
            shapes = ((mel, frames), (frames, mel), (frames,), (1, frames, mel))
            return torch.randn(BATCH, *shapes[self.form], generator=generator)
        if name == "input_values":
            return torch.randn(BATCH, *((4000,), (1, 4000), (64, 16), (8, 64))[self.form], generator=generator)
        if name == "bbox":
            return torch.zeros(BATCH, LENGTH, 4, dtype=torch.long)
        return None

    def _tokens(self, generator: torch.Generator, images: int) -> torch.Tensor:
        special = {v for p in parts(self.config) for k, v in vars(p).items() if k.endswith(("_token_id", "_index"))}
        allowed = [token for token in range(3, _find(self.config, "vocab_size", 128)) if token not in special]
        text = torch.tensor(allowed)[torch.randint(0, len(allowed), (BATCH, LENGTH), generator=generator)]
        image = torch.full((BATCH, images), _image_token(self.config) or 0)
        return torch.cat([text[:, :1], image, text[:, 1:]], dim=1)

    def _image(self, video: bool, generator: torch.Generator) -> torch.Tensor:
        channels = _find(self.config, "num_channels", _find(self.config, "in_channels", 3))
        patch = _find(self.config, "patch_size", 8)
        if self.form == PATCHES and isinstance(patch, int):
            size = channels * _find(self.config, "temporal_patch_size", 1) * patch * patch
            return torch.randn(BATCH * GRID * GRID, size, generator=generator)
        size = _find(self.config, "image_size", 64)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        frames = (_find(self.config, "num_frames", 2),) if video or self.form == 1 else ()
        return torch.randn(BATCH, *frames, channels, height, width, generator=generator)


FORMS = range(4)
PATCHES = 3


def offers(model: Any, config: Any) -> Iterator[Inputs]:
    """Inputs to try, the fullest first."""
    signature = inspect.signature(model.forward).parameters
    required = {n for n, p in signature.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    required.add(getattr(model, "main_input_name", "input_ids"))
    text = {"input_ids", "attention_mask"}
    images = {*_IMAGES, "image_grid_thw", "mm_token_type_ids"}
    tried: list[Inputs] = []
    for wanted in (text | images | required, text | required, required):
        for extra in ({"decoder_input_ids"}, set[str]()):
            names = tuple(name for name in signature if name in wanted | extra)
            for form in FORMS if set(names) & set(_IMAGES) else (0,):
                offer = Inputs(names, config, form)
                if offer not in tried:
                    tried.append(offer)
                    yield offer


def with_image_tokens(inputs: Inputs, error: Exception) -> Iterator[Inputs]:
    """The inputs with as many image tokens as the error says that there are image features, or elements of them."""
    found = _MISMATCH.search(str(error))
    if found is None or inputs.image_tokens or _image_token(inputs.config) is None:
        return
    elements = int(found[2])
    widths = {v for p in parts(inputs.config) for k, v in vars(p).items() if k in ("hidden_size", "projection_dim")}
    for width in (1, *sorted(width for width in widths if isinstance(width, int))):
        count, rest = divmod(elements, width * BATCH)
        if not rest and count <= 1024:
            yield replace(inputs, image_tokens=count)


def _image_token(config: Any) -> int | None:
    token = _find(config, "image_token_id", _find(config, "image_token_index", None))
    return token if isinstance(token, int) else None


def _find(config: Any, name: str, default: Any) -> Any:
    """The first value of an attribute in the configuration or one below it."""
    return next((v for part in parts(config) if (v := getattr(part, name, None)) is not None), default)
