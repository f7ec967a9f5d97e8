"""Inferred dtypes beside recorded ones."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.annotate.rows import Row
    from amplint.infer.lattice.values import Origin
    from dtype_truth.truth import Case, Position, Recorded, Recording

VERDICTS = ("exact", "partial", "unknown", "wrong")
TORCH = (2, 13)


@dataclass(frozen=True, slots=True)
class Inferred:
    """What the inference says of one expression: the dtypes, None where unknown, and where they were decided."""

    dtypes: tuple[str, ...] | None
    origin: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A recorded row and what was inferred for the same span: None where the inference has no such expression.

    ``own``: the file is the one that defines the model's class.
    """

    case: Case
    path: Path
    own: bool
    truth: Recorded
    inferred: Inferred | None

    @property
    def verdict(self) -> str:
        """One of :data:`VERDICTS`."""
        return verdict(self.truth.dtype, self.inferred.dtypes if self.inferred is not None else None)


def verdict(true: str, inferred: tuple[str, ...] | None) -> str:
    """One of :data:`VERDICTS`: partial where the right dtype is one of several."""
    if not inferred:
        return "unknown"
    if true not in inferred:
        return "wrong"
    return "exact" if len(inferred) == 1 else "partial"


@dataclass(frozen=True, order=True, slots=True)
class Task:
    """One file in one way of running."""

    path: Path
    scenario: str
    device: str


def infer(task: Task) -> dict[Position, Inferred]:
    """What ``amplint dtypes FILE --scenario S --device D`` prints, by exact span, without starting Python for it.

    Raises SourceError where the file does not parse.
    """
    scenario = find_scenario(task.scenario)
    if scenario is None:
        raise ValueError(f"no scenario is called {task.scenario!r}")
    source = Source(task.path, task.path.read_bytes())
    found = file_dtypes(source, scenarios=(CONTROL, scenario), device=task.device, torch_version=TORCH)
    return {_position(row): Inferred(row.dtypes[1], _origin(row.origin)) for row in found.rows}


def _attempt(task: Task) -> dict[Position, Inferred] | str:
    try:
        return infer(task)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Inference:
    """Inferred expressions by file and way of running, in ``jobs`` processes.

    ``failures`` says where the inference raised, which it never should; such files have no rows.
    """

    def __init__(self, tasks: Iterable[Task], jobs: int = 1) -> None:
        ordered = sorted(set(tasks))
        if jobs > 1:
            with ProcessPoolExecutor(jobs) as pool:
                answers = list(pool.map(_attempt, ordered, chunksize=4))
        else:
            answers = [_attempt(task) for task in ordered]
        done = dict(zip(ordered, answers, strict=True))
        self.failures = {task: answer for task, answer in done.items() if isinstance(answer, str)}
        self._found = {task: {} if isinstance(answer, str) else answer for task, answer in done.items()}

    def of(self, path: Path, case: Case) -> dict[Position, Inferred]:
        return self._found[Task(path, case.scenario, case.device)]


def tasks(recordings: Iterable[Recording]) -> Iterator[Task]:
    """The files in which anything was recorded, as each recording ran."""
    for made in recordings:
        for file in {row.file for row in made.rows}:
            yield Task(Path(made.root, file), made.case.scenario, made.case.device)


def compare(recordings: Iterable[Recording], inference: Inference, *, calls: bool = False) -> Iterator[Compared]:
    """Every recorded row with its inferred one. ``calls``: also what calls of the library's own code gave."""
    for made in recordings:
        for row in made.rows:
            if row.torch or calls:
                path = Path(os.path.join(made.root, row.file))
                found = inference.of(path, made.case).get(row.position)
                yield Compared(made.case, path, row.file == made.modeling, row, found)


def _position(row: Row) -> Position:
    start, end = row.span.start, row.span.end
    return start.row, start.column, end.row, end.column


def _origin(origin: Origin | None) -> str:
    if origin is None:
        return ""
    start = origin.span.start
    return f"{Path(origin.filename).name}:{start.row}:{start.column} ({origin.what})"
