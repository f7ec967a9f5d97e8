"""What amplint says of a mutant that it does not say of the original; needs no torch."""

from __future__ import annotations

import ast
import multiprocessing
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from amplint.config import Config
from amplint.engine import check_file
from amplint.garbage import collect_seldom
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.judging import judging_options
from amplint.plugins import load_rules
from amplint.source import Source
from mutants.edits import apply, changed_rows, row_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amplint.finding import Finding
    from mutants.rows import Row


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding, its rows in the file it is about: ``causes`` are the rows there that decided it, ``doubts`` the names
    of those that hold, ``fixable`` whether it has a fix, ``beside`` whether it lies in a function that the mutant
    edits."""

    code: str
    first: int
    last: int
    severity: str
    certainty: str
    scenarios: tuple[str, ...]
    causes: tuple[int, ...]
    doubts: tuple[str, ...] = ()
    fixable: bool = False
    beside: bool = False

    def on(self, first: int, last: int) -> bool:
        """Whether it lies on one of these rows."""
        return self.first <= last and first <= self.last


@dataclass(frozen=True)
class Task:
    """One file of a library with its mutants. ``doubted``: what is hidden by a doubt is wanted too, else what default
    settings tell; ``named``: every default scenario is named, as by who says that the code runs so."""

    path: Path
    rows: tuple[Row, ...]
    doubted: bool = False
    named: bool = False


@dataclass(frozen=True)
class Said:
    """What is said of the original, and of each mutant beyond that."""

    path: Path
    original: tuple[Claim, ...]
    new: tuple[tuple[Claim, ...], ...]
    failures: tuple[str, ...]


def said(tasks: Iterable[Task], jobs: int) -> Iterator[tuple[Task, Said]]:
    """Check every task's file and mutants in ``jobs`` processes; in no fixed order."""
    tasks = sorted(tasks, key=lambda task: -len(task.rows))
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=collect_seldom) as pool:
        yield from zip(tasks, pool.map(check, tasks), strict=True)


def check(task: Task) -> Said:
    """Check a file and its mutants, each as if it stood in the original's place."""
    data = task.path.read_bytes()
    failures: list[str] = []
    original = _claims(task, data, failures)
    new = []
    for row in task.rows:
        edited = apply(data, row.edits)
        found = list(beyond(original, row, _claims(task, edited, failures)))
        around = list(_functions(edited, changed_rows(row.edits)))
        new.append(tuple(replace(one, beside=any(one.on(*rows) for rows in around)) for one in found))
    return Said(task.path, original, tuple(new), tuple(failures))


def beyond(original: Iterable[Claim], row: Row, claims: Iterable[Claim]) -> Iterator[Claim]:
    """What is claimed of a mutant, in the scenarios in which it is not claimed of the same line of the original."""
    known: dict[tuple[str, int], set[str]] = defaultdict(set)
    for claim in original:
        known[claim.code, row_after(claim.first, row.edits)].update(claim.scenarios)
    for claim in claims:
        scenarios = tuple(name for name in claim.scenarios if name not in known[claim.code, claim.first])
        if scenarios:
            yield replace(claim, scenarios=scenarios)


def _claims(task: Task, data: bytes, failures: list[str]) -> tuple[Claim, ...]:
    names = [scenario.name for scenario in DEFAULT_SCENARIOS] if task.named else []
    options = replace(judging_options(Config(), load_rules(), scenario=names), each_place=True)
    if task.doubted:
        options = replace(options, dropped=True)
    result = check_file(Source(task.path, data), options)
    failures += result.failures
    return tuple(_claim(finding, task.path) for finding in result.findings)


def _claim(finding: Finding, path: Path) -> Claim:
    return Claim(
        finding.code,
        finding.span.start.row,
        finding.span.end.row,
        finding.severity.value,
        finding.certainty.value,
        finding.scenarios,
        tuple(cause.span.start.row for cause in finding.causes if cause.filename == path),
        tuple(held.doubt.name for held in finding.doubts),
        finding.fix is not None,
    )


def _functions(data: bytes, places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The rows of every innermost function that holds one of these rows."""
    functions = [node for node in ast.walk(ast.parse(data)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for first, last in places:
        around = [node for node in functions if node.lineno <= first and last <= (node.end_lineno or 0)]
        if around:
            inner = max(around, key=lambda node: node.lineno)
            yield inner.lineno, inner.end_lineno or inner.lineno


def finds(claim: Claim, row: Row, scenario: str) -> bool:
    """Whether a claim is about what a mutant does in a scenario: at the failing line, on the broken place, or with it
    as a cause. Where no line is known to fail, as where nothing raises, it may lie anywhere in the function that was
    broken: a dropped ``unscale_`` shows in the clip that follows."""
    if scenario not in claim.scenarios:
        return False
    place = row.labels[scenario].get("place")
    if place is not None and place[0] == row.file and claim.on(place[1], place[1]):
        return True
    if claim.beside and place is None:
        return True
    return any(
        claim.on(first, last) or any(first <= cause <= last for cause in claim.causes)
        for first, last in changed_rows(row.edits)
    )
