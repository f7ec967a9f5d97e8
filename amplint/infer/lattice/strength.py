"""How surely two dtypes differ."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import FLOATS, LOW, Bound

if TYPE_CHECKING:
    from amplint.infer.lattice.dtypes import Lane


class Strength(IntEnum):
    """How surely two dtypes differ in one scenario."""

    NONE = 0
    CALLERS = 1
    """Both follow callers, who may pass what differs."""
    CALLER = 2
    """One is fixed, and a caller may pass what differs from it."""
    PATH = 3
    """They differ on one of the paths that lead here."""
    ASSUMED = 4
    """They differ for what a caller is taken to pass in the scenario."""
    FORCED = 5
    """The code forces them to differ."""


def strength(a: Lane, b: Lane) -> Strength:
    """How surely two operands' dtypes differ, going by what is known of each."""
    for x, y in ((a, b), (b, a)):
        if x.bounded and y.known and not (y.assumed or y.mask & ~LOW):
            return Strength.FORCED if x.bounded is Bound.SURE else Strength.ASSUMED
    if (a.symbol is not None and a.symbol is b.symbol) or not a.mask or not b.mask:
        return Strength.NONE
    if (a.mask | b.mask) & ~FLOATS:
        return Strength.NONE
    if not a.mask & b.mask:
        if a.open or b.open:
            return Strength.PATH
        return Strength.ASSUMED if a.assumed or b.assumed else Strength.FORCED
    if a.mask == b.mask and not a.mask & (a.mask - 1):
        return Strength.NONE
    if (b.exact and a.certain & ~b.mask) or (a.exact and b.certain & ~a.mask):
        return Strength.PATH
    follows_caller = (a.assumed and not a.exact) or (b.assumed and not b.exact)
    if a.exact or b.exact:
        return Strength.CALLER if follows_caller else Strength.PATH
    return Strength.CALLERS if follows_caller else Strength.NONE


def gradient_strength(gradient: Lane, other: Lane) -> Strength:
    """How surely the gradient of a low-precision output meets another dtype.

    The gradient has the dtype that forward returned; where autocast lowered that on any path while the other operand
    follows a caller or stayed wide, they differ. Where what a caller passes keeps the output wide, nothing lowered it.
    """
    if gradient.symbol is not None and gradient.symbol is other.symbol:
        return Strength.NONE
    if not gradient.mask & LOW or not other.mask or other.mask & ~FLOATS:
        return Strength.NONE
    if gradient.assumed and not gradient.certain & LOW:
        return Strength.NONE
    if (
        other.mask & ~gradient.mask
        or (other.assumed and not other.exact)
        or (gradient.mask & ~other.mask and other.exact)
    ):
        return Strength.PATH
    return Strength.NONE
