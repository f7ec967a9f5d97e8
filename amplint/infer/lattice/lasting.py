"""Values of other files that are the same in every analysis, so that they are evaluated once for a whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.infer.lattice.values import Value


class Lasting(NamedTuple):
    """A value that is the same in every analysis, and the files that it was made of."""

    value: Value
    needs: frozenset[Path]


MAX_HELD = 20_000
"""Values inside another that are looked at to find out whether it lasts."""


def lasts(value: Value) -> bool:
    """Whether a value holds nothing that an analysis changes, or that is its alone."""
    pending, looked = [value], 0
    while pending:
        looked += 1
        held = pending.pop().rests_on if looked <= MAX_HELD else None
        if held is None:
            return False
        pending.extend(held)
    return True
