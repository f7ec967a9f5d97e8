"""A model that was built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.verify.build import Recipe


@dataclass(frozen=True)
class Model:
    """A model that was built and has run once. ``how`` says from what; ``cls`` is its class."""

    recipe: Recipe
    cls: type
    how: str


class NotBuilt(Exception):
    """The model cannot be built or run, and why."""
