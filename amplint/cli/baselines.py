"""``check --baseline`` and ``--write-baseline``: what was found before is left out, or written down."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.baseline import as_text, baseline_of, read_baseline
from amplint.cli.main import counted
from amplint.config import UsageError
from amplint.files import display_path
from amplint.narrowing import Narrowing
from amplint.one_cause import one_for_each_cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amplint.baseline import Baseline
    from amplint.engine import Task
    from amplint.finding import FileResult, Finding


class Baselines:
    """The baselines of one run."""

    def __init__(self) -> None:
        self._by_path: dict[Path, tuple[Baseline, dict[str, dict[str, int]]]] = {}
        self._tasks: dict[Path, list[Task]] = {}

    def narrowed(self, task: Task, path: Path) -> Task:
        """A task with what the baseline at ``path`` knows of the file left out. Raises UsageError."""
        baseline, known = self.of(path)
        self._tasks.setdefault(path, []).append(task)
        return replace(task, narrowing=Narrowing(known.get(baseline.name(task.path), {})))

    def of(self, path: Path) -> tuple[Baseline, dict[str, dict[str, int]]]:
        """A baseline, and what it knows of each file. Raises UsageError for one that cannot be used."""
        if path not in self._by_path:
            baseline = read_baseline(path)
            self._by_path[path] = baseline, baseline.by_file()
        return self._by_path[path]

    def summary(self, results: Iterable[FileResult], paths: Sequence[str]) -> Iterator[str]:
        """What each baseline knew, and what of it is gone; ``paths`` are those of the command line."""
        by_path = {result.path: result for result in results}
        for path, tasks in sorted(self._tasks.items()):
            baseline, name = self._by_path[path][0], display_path(path)
            mine = [by_path[task.path] for task in tasks if task.path in by_path]
            known = sum(_told(result.known) for result in mine)
            if known:
                yield f"{counted(known, 'finding')} that {name} knows {_is(known)} left out."
            gone = baseline.gone(
                mine, {task.path: frozenset(rule.code for rule in task.options.rules) for task in tasks}
            )
            if gone:
                again = shlex.join(["amplint", "check", *paths, "--write-baseline", name])
                yield f"{counted(gone, 'finding')} that {name} knows {_is(gone)} gone; to refresh it: {again}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _told(findings: Iterable[Finding]) -> int:
    return len(one_for_each_cause(findings))


def earlier_baseline(given: str) -> Baseline | None:
    """The baseline that is to be written again; None where there is none yet. Raises UsageError for another file, and
    where none can be written."""
    path = Path(os.path.abspath(given))
    if path.exists():
        return read_baseline(path)
    if not path.parent.is_dir():
        raise UsageError(f"cannot write the baseline {given}: there is no folder {path.parent}")
    return None


def write_baseline(given: str, earlier: Baseline | None, results: Iterable[FileResult]) -> str:
    """Write what was found, and say how much that is. Raises UsageError."""
    from amplint.fix.writing import put

    path = Path(os.path.abspath(given))
    judged = [result for result in results if not result.failures and result.error is None]
    baseline = baseline_of(path, judged, earlier)
    try:
        mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
        put(path.resolve(), as_text(baseline).encode(), mode)
    except OSError as error:
        raise UsageError(f"cannot write the baseline {given}: {error.strerror or error}") from error
    found = sum(_told(result.findings) for result in judged)
    files = sum(bool(result.findings) for result in judged)
    kept = sum(baseline.entries.values()) - sum(len(result.findings) for result in judged)
    said = f"Wrote {counted(found, 'finding')} in {counted(files, 'file')} to {display_path(path)}"
    return f"{said}, and kept {kept:,} of files that were not checked." if kept else f"{said}."


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
