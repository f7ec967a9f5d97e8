"""The ways in which people break precision, taken from fixed bugs of public repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutants.edits import minimal
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

LONGEST = 80
"""Characters of the text of an edit at most: labels hold no more of a library's code than it takes to break it."""
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
    """Every mutant of a file that takes little text, once for the operator that comes first. A few do not parse."""
    seen: set[tuple[Edit, ...]] = set()
    for operator in OPERATORS.values():
        for found in operator.find(file):
            edits = minimal(file.data, found)
            if edits not in seen and all(len(edit.text) <= LONGEST for edit in edits):
                seen.add(edits)
                yield operator, edits
