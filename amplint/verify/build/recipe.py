"""What was built, how to build it again, and why nothing could be built."""

from __future__ import annotations

import random
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field
from typing import Any

import torch

from amplint.frozen import dataclass
from amplint.verify.build import unset

Parts = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A module (or callable), its arguments, its keyword arguments."""


@dataclass(frozen=True)
class Built:
    """A module, or a callable for an autograd Function, with the inputs of one call.

    Float inputs are float32 leaf tensors without ``requires_grad``, unless a user's example made them otherwise.
    """

    module: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    how: str


class CannotBuild(Exception):
    """Nothing could be built. ``reason`` is one line; ``advice`` is what the user should add."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice


@dataclass(frozen=True)
class Recipe:
    """How a target is built. ``how`` names the source: a factory, an example, or the class's own signature.

    ``guessed``: the inputs are not what a user wrote.
    """

    how: str
    seed: int
    parts: Callable[[], Parts] = field(repr=False)
    guessed: bool = False

    def make(self) -> Built:
        """The module and fresh inputs, the same on every call.

        Seeds torch, random, and numpy where it is imported. Under another torch default dtype the module is constructed
        in it; what the code constructs with an explicit dtype keeps that. What it leaves unset gets small numbers.
        """
        seed_everything(self.seed)
        with unset.marked():
            module, args, kwargs = self.parts()
        unset.fill(module, (args, kwargs), self.seed)
        args, kwargs = as_leaves(args), as_leaves(kwargs)
        return Built(module=module, args=args, kwargs=kwargs, how=self.how)


def seed_everything(seed: int) -> None:
    """Seed torch, random, and numpy where it is imported."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def as_leaves(value: Any) -> Any:
    """``value`` with its tensors detached; float tensors of torch's default dtype become float32."""
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        detached = value.detach()
        return detached.float() if detached.dtype == torch.get_default_dtype() else detached
    if type(value) in (list, tuple):
        return type(value)(as_leaves(item) for item in value)
    if type(value) in (dict, OrderedDict):
        return type(value)((key, as_leaves(item)) for key, item in value.items())
    return value
