"""Mutants drawn so that no operator dominates."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING

from mutants.outcomes import HURTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutants.rows import Row

SEED = 1


def draw(rows: Sequence[Row], most: int) -> list[Row]:
    """Up to ``most`` mutants of each operator, those that hurt and the others in turn, by a fixed seed."""
    by_operator: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.key):
        hurts = any(label["label"] in HURTS for label in row.labels.values())
        by_operator[row.operator, hurts].append(row)
    drawn = []
    for operator in sorted({operator for operator, _ in by_operator}):
        groups = [by_operator.get((operator, hurts), []) for hurts in (True, False)]
        for group in groups:
            random.Random(f"{SEED} {operator}").shuffle(group)
        halved = [min(len(groups[0]), max(most // 2, most - len(groups[1]))), most]
        taken = groups[0][: halved[0]]
        drawn += [*taken, *groups[1][: most - len(taken)]]
    return drawn
