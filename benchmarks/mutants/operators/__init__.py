"""The ways in which people break precision, taken from fixed bugs of public repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutants.operators import (
    casts,
    constructors,
    functions,
    losses,
    positions,
    ranges,
    regions,
    scaler,
    upcasts,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.edits import Edit
    from mutants.operators.operator import Operator
    from mutants.sources import File

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for module in (
        casts,
        constructors,
        functions,
        losses,
        positions,
        ranges,
        regions,
        scaler,
        upcasts,
        writes,
    )
    for operator in module.OPERATORS
}


def mutations(file: File) -> Iterator[tuple[Operator, tuple[Edit, ...]]]:
    """Every mutant of a file, once for the operator that comes first. A few do not parse."""
    seen: set[tuple[Edit, ...]] = set()
    for operator in OPERATORS.values():
        for edits in operator.find(file):
            edits = tuple(sorted(edits))
            if edits not in seen:
                seen.add(edits)
                yield operator, edits
