"""What was recorded beside what is inferred of the same expressions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import find_scenario
from amplint.source import Source
from soundness.running import DTYPES, record
from soundness.writer import written

if TYPE_CHECKING:
    from pathlib import Path

    from soundness.running import Position, Recorded

TORCH = (2, 13)
Inferred = dict["Position", tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Violation:
    """An expression that had a dtype which the inference excludes."""

    seed: int
    scenario: str
    position: Position
    recorded: frozenset[str]
    inferred: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One program: ``counts`` of expressions that ran, by what is inferred of them, and its violations.

    exact: one dtype, the only one it had; among: several; unknown; unseen: it is not said to be a tensor, or not
    reached.
    """

    counts: Counter[str]
    violations: tuple[Violation, ...]


def infer(path: Path, text: str) -> dict[str, Inferred]:
    """What is inferred of each expression, by scenario."""
    scenarios = tuple(scenario for name in DTYPES if (scenario := find_scenario(name)))
    source = Source(path, text.encode())
    found = file_dtypes(source, scenarios=scenarios, device="cpu", torch_version=TORCH)
    inferred: dict[str, Inferred] = {scenario.name: {} for scenario in scenarios}
    for row in found.rows:
        start, end = row.span.start, row.span.end
        for scenario, dtypes in zip(scenarios, row.dtypes, strict=True):
            inferred[scenario.name][start.row, start.column, end.row, end.column] = dtypes
    return inferred


def judge(path: Path, seed: int) -> Judged:
    """Write, run and analyse the program of a seed. ``path``: where it would lie; the file need not exist."""
    text = written(Random(seed))
    return compare(seed, text, record(text, seed), infer(path, text))


def compare(seed: int, text: str, recorded: dict[str, Recorded], inferred: dict[str, Inferred]) -> Judged:
    """What was recorded, held against what is inferred."""
    counts: Counter[str] = Counter()
    violations = []
    lines = text.splitlines()
    for scenario, places in recorded.items():
        said = inferred[scenario]
        for position, dtypes in places.items():
            if position not in said:
                counts["unseen"] += 1
            elif (known := said[position]) is None:
                counts["unknown"] += 1
            elif dtypes <= set(known):
                counts["exact" if len(known) == 1 else "among"] += 1
            else:
                counts["wrong"] += 1
                row, column, end_row, end_column = position
                shown = lines[row - 1][column - 1 : end_column - 1] if row == end_row else lines[row - 1].strip()
                violations.append(Violation(seed, scenario, position, frozenset(dtypes), known, shown))
    return Judged(counts, tuple(violations))
