"""Fixing many files: what is found in one rests on others, so those are checked again when they were fixed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from amplint.contents import real
from amplint.fix.writing import FixError, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from amplint.finding import FileResult

MAX_ROUNDS = 5
"""Times that fixes of one file make others be fixed again."""


class CheckFiles(Protocol):
    """Check files once, and fix them where ``fixing``, with other files as ``held`` has them; nothing is written."""

    def __call__(self, paths: Sequence[Path], held: Mapping[Path, bytes], *, fixing: bool) -> Iterable[FileResult]: ...


def fix_files(paths: Sequence[Path], check: CheckFiles, *, write: bool) -> Iterator[FileResult]:
    """Fix files until what is found in each is what a check of all of them, as they then are, finds.

    Results come as they are ready; that of a file goes before those that came earlier. Files are written at the end,
    each in one step; one that cannot be is reported as it stands.
    """
    latest: dict[Path, FileResult] = {}
    held: dict[Path, bytes] = {}
    pending = list(paths)
    for number in range(MAX_ROUNDS + 1):
        if not pending:
            break
        fixed: set[Path] = set()
        for result in check(pending, held, fixing=number < MAX_ROUNDS):
            if result.after is not None:
                fixed.add(result.path)
            result = latest[result.path] = _since_the_first(latest.get(result.path), result)
            yield result
        for path in fixed:
            held[path] = latest[path].after or latest[path].before
        pending = _resting_on(fixed, latest)
    if write:
        yield from _written(latest, held, check)


def _since_the_first(earlier: FileResult | None, result: FileResult) -> FileResult:
    """A result with what earlier rounds did to the file."""
    if earlier is None or earlier.after is None:
        return result
    after = earlier.after if result.after is None else result.after
    return replace(
        result,
        before=earlier.before,
        after=after,
        fixed=earlier.fixed + result.fixed,
        failures=tuple(dict.fromkeys((*earlier.failures, *result.failures))),
    )


def _resting_on(fixed: set[Path], latest: Mapping[Path, FileResult]) -> list[Path]:
    """The files whose findings rest on one of these."""
    if not fixed:
        return []
    targets = {real(path) for path in fixed}
    known: dict[Path, bool] = {}
    for result in latest.values():
        for path in result.followed:
            if path not in known:
                known[path] = real(path) in targets
    return [path for path, result in latest.items() if any(known[other] for other in result.followed)]


def _written(latest: dict[Path, FileResult], held: dict[Path, bytes], check: CheckFiles) -> Iterator[FileResult]:
    """Write what files hold now. Those that stay as they were are checked again, with what rests on them."""
    errors: dict[Path, str] = {}
    for path in sorted(held):
        try:
            write_atomically(path, latest[path].before, held[path])
        except FixError as error:
            errors[path] = str(error)
    left = {path: data for path, data in held.items() if path not in errors}
    again = [*errors, *(path for path in _resting_on(set(errors), latest) if path not in errors)]
    for result in check(again, left, fixing=False) if again else ():
        if result.path in errors:
            yield replace(result, error=errors[result.path])
        else:
            yield _since_the_first(latest[result.path], result)
