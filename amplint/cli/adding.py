"""``check --add-ignore``: silence what is found by comments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amplint import contents
from amplint.cli.main import counted, message
from amplint.engine import check_file
from amplint.fix import FixError, apply_edits, write_atomically
from amplint.notebook import is_notebook
from amplint.one_cause import one_for_each_cause
from amplint.plugins import OWN
from amplint.source import Source
from amplint.suppression.adding import ignoring
from amplint.unparsable import UNPARSABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.engine import Task
    from amplint.finding import FileResult

_OWN = frozenset(rule.code for rule in OWN)
"""Codes that a comment does not silence: it would say that a comment is unused, or stand in what cannot be read."""


def add_ignores(tasks: Iterable[Task], results: Sequence[FileResult], *, quiet: bool) -> list[FileResult]:
    """Write the comments, say how many findings they silence, and return what is left."""
    by_path = {task.path: task for task in tasks}
    left = [_added(by_path[result.path], result) for result in results]
    silenced = [_told(before) - _told(after) for before, after in zip(results, left, strict=True)]
    if any(silenced) and not quiet:
        files = counted(sum(map(bool, silenced)), "file")
        message(f"added `# amplint: ignore` for {counted(sum(silenced), 'finding')} in {files}")
    return [replace(result, findings=tuple(one_for_each_cause(result.findings))) for result in left]


def _told(result: FileResult) -> int:
    return len(one_for_each_cause(result.findings))


def _added(task: Task, result: FileResult) -> FileResult:
    """What is left of one file; the result itself where nothing was written."""
    findings = [finding for finding in result.findings if finding.code not in _OWN]
    if not findings:
        return result
    if is_notebook(task.path):
        return replace(result, notes=(*result.notes, f"{task.path}: --add-ignore does not write into notebooks"))
    try:
        source = Source(task.path, contents.read(task.path))
        commented = apply_edits(source, ignoring(source, findings))
        again = check_file(commented, task.options, task.narrowing)
        if any(finding.code == UNPARSABLE.code for finding in again.findings):
            return replace(result, failures=(*result.failures, f"{task.path}: no comment can stand there"))
        write_atomically(task.path, source.data, commented.data)
    except OSError as error:
        return replace(result, error=f"cannot read {task.path}: {error.strerror or error}")
    except FixError as error:
        return replace(result, error=str(error))
    return again
