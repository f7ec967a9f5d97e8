"""What a target is run on besides random numbers: zeros, constants, large and small values, masks, long sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.tensors import replaced, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.verify.build import Recipe
    from amplint.verify.build.recipe import Parts
    from amplint.verify.modes import Call

RANDOM, INNER, MASKED, LONG = "random", "inner", "masked", "long"
VARIANTS = (RANDOM, INNER, "zeros", "ones", "large", "small", MASKED, LONG)
"""``inner``: float inputs in autocast's dtype, as a layer before it hands them over."""
NUMBERS_ONLY = ("zeros", "ones", "large", "small", LONG)
"""Variants in which an operator that changes no numbers is not run."""
LARGE, SMALL, REPEATS = 300.0, 1e-3, 20


@dataclass(frozen=True)
class Case:
    """One way of running a target: a variant of its inputs, and how it is called."""

    variant: str
    call: Call

    def __str__(self) -> str:
        return f"{self.variant} {self.call.mode}"


def varied(recipe: Recipe, variant: str) -> Recipe:
    """The recipe with other values or lengths of inputs."""
    if variant == MASKED:
        return replace(recipe, parts=_changed(recipe.parts, _first_row_masked))
    change = _CHANGES.get(variant)
    return recipe if change is None else replace(recipe, parts=_changed(recipe.parts, change))


def _changed(parts: Callable[[], Parts], change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Parts]:
    def made() -> Parts:
        module, args, kwargs = parts()
        return module, replaced(args, change), replaced(kwargs, change)

    return made


def _floating(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: change(tensor) if tensor.is_floating_point() else tensor


def _repeated(tensor: torch.Tensor) -> torch.Tensor:
    """A sequence of features, or of ids and flags, that is longer than bfloat16 can count."""
    if tensor.is_floating_point() and tensor.dim() == 3:
        return tensor.repeat(1, REPEATS, 1)
    if not tensor.is_floating_point() and not tensor.is_complex() and tensor.dim() == 2:
        return tensor.repeat(1, REPEATS)
    return tensor


def _first_row_masked(tensor: torch.Tensor) -> torch.Tensor:
    """A mask of which the first row lets nothing through, the last all, the others the first half."""
    if tensor.dtype is not torch.bool or tensor.dim() < 2:
        return tensor
    mask = torch.ones_like(tensor)
    mask[..., mask.shape[-1] // 2 :] = False
    mask[0] = False
    mask[-1] = True
    return mask


_CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": _floating(torch.zeros_like),
    "ones": _floating(torch.ones_like),
    "large": _floating(lambda tensor: tensor * LARGE),
    "small": _floating(lambda tensor: tensor * SMALL),
    LONG: _repeated,
}


def differs(recipe: Recipe, variant: str) -> bool:
    """Whether the variant changes the inputs at all."""
    before, after = recipe.make(), varied(recipe, variant).make()
    pairs: list[Any] = [list(tensors((built.args, built.kwargs))) for built in (before, after)]
    return len(pairs[0]) != len(pairs[1]) or any(
        a.shape != b.shape or not torch.equal(a, b) for a, b in zip(*pairs, strict=True)
    )
