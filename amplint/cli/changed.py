"""``check --diff-base``: what no changed line brings is left out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.changed_lines import ChangedLines
from amplint.cli.main import counted
from amplint.config import UsageError
from amplint.git import OPTION, Repository, root_of
from amplint.notebook import is_notebook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.engine import Task
    from amplint.source import Source


class Changed:
    """The files and lines that changed since a revision."""

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._repositories: dict[Path, Repository] = {}
        self._files = 0
        self._left = 0

    def tasks(self, tasks: Iterable[Task], paths: Iterable[str]) -> list[Task]:
        """The files in which something changed, each with the lines.

        ``paths`` are those of the command line, which have to lie in a repository too. Raises UsageError.
        """
        for given in paths:
            self._repository(Path(os.path.realpath(given)))
        by_real = {Path(os.path.realpath(task.path)): task for task in tasks}
        by_root: dict[Path, list[Path]] = {}
        for file in by_real:
            by_root.setdefault(self._repository(file).root, []).append(file)
        left = [
            _narrowed(by_real[file], change.rows)
            for root, files in by_root.items()
            for file, change in self._repositories[root].changes(files).items()
        ]
        self._files, self._left = len(by_real), len(left)
        return sorted(left, key=lambda task: task.path)

    def stdin(self, task: Task, source: Source) -> Task:
        """What stdin holds, with the lines that differ from the file of its name. Raises UsageError."""
        path = Path(os.path.realpath(task.path))
        change = self._repository(path).compared(path, source.data)
        if change is not None and is_notebook(task.path):
            return task
        rows = change.rows if change is not None else ()
        return replace(task, narrowing=replace(task.narrowing, changed=ChangedLines(rows, source.data)))

    @property
    def nothing(self) -> bool:
        """Whether there were files, and none of them changed."""
        return bool(self._files) and not self._left

    def summary(self) -> Iterator[str]:
        """How much of the run that is."""
        if self._left:
            yield (
                f"{self._left:,} of {counted(self._files, 'file')} changed since {self._revision}; "
                "what no changed line brings is left out."
            )
        elif self.nothing:
            yield f"Nothing to check: none of {counted(self._files, 'file')} changed since {self._revision}."

    def _repository(self, path: Path) -> Repository:
        root = root_of(path)
        if root is None:
            raise UsageError(f"{OPTION} needs git: {path} lies in no git repository")
        if root not in self._repositories:
            self._repositories[root] = Repository(root, self._revision)
        return self._repositories[root]


def _narrowed(task: Task, rows: tuple[tuple[int, int], ...]) -> Task:
    """A task with its changed rows; a notebook in which something changed counts as a whole."""
    if is_notebook(task.path):
        return task
    try:
        data = task.path.read_bytes()
    except OSError:
        return task
    return replace(task, narrowing=replace(task.narrowing, changed=ChangedLines(rows, data)))
