"""Checks only the files whose results are not kept, and keeps theirs."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from amplint.cache.digests import Digests, digest
from amplint.cache.records import record_of, result_of
from amplint.cache.store import Store
from amplint.cache.surroundings import Places, Surroundings
from amplint.narrowing import WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from amplint.cache.digests import Known
    from amplint.engine import Options, Results, Task
    from amplint.finding import FileResult


def checked(tasks: Sequence[Task], folder: Path, check: Callable[[Sequence[Task]], Results]) -> Results:
    """The results of some files, those from a cache first; ``check`` gives those of all others.

    ``folder`` is where the cache lies. Nothing is kept of what failed, nor of files that fixes, a baseline, changed
    lines or a rule pack decide about, nor where files changed in the meantime.
    """
    kept = _Kept(Store(folder))
    left: dict[Path, Task] = {}
    for task in tasks:
        result = kept.of(task)
        if result is None:
            left[task.path] = task
        else:
            yield result
    if not left:
        return
    for task in left.values():
        kept.look_at(task)
    with closing(check(list(left.values()))) as stream:
        for result in stream:
            kept.keep(left[result.path], result)
            yield result
    kept.write()


class _Project:
    """The results of one project and one way of checking, as a file of the store has them."""

    def __init__(self, store: Store, key: str, places: Places) -> None:
        self.store = store
        self.key = key
        kept = store.read(key)
        files, known = kept.get("files"), kept.get("digests")
        self.files: dict[str, Any] = files if isinstance(files, dict) else {}
        self.digests = Digests(_known_from(known) if isinstance(known, dict) else {})
        self.surroundings = Surroundings(self.digests, places)
        self.added: dict[str, list[Any]] = {}
        self._wholes: dict[str, str | None] = {}

    def whole(self, task: Task) -> str | None:
        """All that a result rests on beside the file: its surroundings, and the releases of torch for it."""
        folder = os.path.dirname(task.path)
        if folder not in self._wholes:
            around = self.surroundings.of(task.path.parent)
            torch = task.options.torch_for(task.path)
            self._wholes[folder] = digest(f"{around} {torch}".encode()) if around is not None else None
        return self._wholes[folder]

    def write(self) -> None:
        """Write what is known, unless something that it rests on is another by now."""
        found = self.digests.found()
        if self.added and self.surroundings.still(again := Digests(found)) and self.digests.still(again):
            self.store.write(self.key, {"files": self.files | self.added, "digests": found})


def _known_from(rows: dict[Any, Any]) -> Known:
    """The digests of a file of the store, without what is none."""
    return {
        path: (row[0], row[1], row[2])
        for path, row in rows.items()
        if isinstance(row, list) and len(row) == 3 and isinstance(row[2], str)
    }


class _Kept:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._projects: dict[tuple[str, str], _Project] = {}
        self._of_folders: dict[tuple[str, int], _Project | None] = {}
        self._asked: dict[int, str | None] = {}
        self._places = Places()

    def of(self, task: Task) -> FileResult | None:
        path, project = str(task.path), self._project(task)
        row = project.files.get(path) if project is not None else None
        if project is None or row is None:
            return None
        try:
            own, whole, record = row
            if own != project.digests.of(path):
                return None
            if whole is not None and whole != project.whole(task):
                return None
            return result_of(task.path, record)
        except (ValueError, TypeError, KeyError, IndexError):
            return None

    def look_at(self, task: Task) -> None:
        """Note what a result will rest on, before it is found: what changes from now on is another state."""
        project = self._project(task)
        if project is not None:
            project.digests.of(str(task.path))
            project.surroundings.of(task.path.parent)

    def keep(self, task: Task, result: FileResult) -> None:
        project = self._project(task)
        if project is None or result.failures or result.error is not None:
            return
        whole = None if result.alone else project.whole(task)
        if whole is None and not result.alone:
            return
        project.added[str(task.path)] = [project.digests.of(str(task.path)), whole, record_of(result)]

    def write(self) -> None:
        for project in self._projects.values():
            project.write()

    def _project(self, task: Task) -> _Project | None:
        if task.narrowing is not WHOLE:
            return None
        key = (os.path.dirname(task.path), id(task.options))
        if key not in self._of_folders:
            self._of_folders[key] = self._found(task)
        return self._of_folders[key]

    def _found(self, task: Task) -> _Project | None:
        if id(task.options) not in self._asked:
            self._asked[id(task.options)] = _said(task.options)
        asked = self._asked[id(task.options)]
        if asked is None:
            return None
        key = (str(self._places.of(task.path.parent).project), asked)
        if key not in self._projects:
            name = digest("\0".join(key).encode("utf-8", "surrogatepass"))
            self._projects[key] = _Project(self._store, name, self._places)
        return self._projects[key]


def _said(options: Options) -> str | None:
    """What is asked for, in words; None where something may be fixed, or rules of a pack take part."""
    if options.fix is not None or any(rule.pack for rule in options.known or options.rules):
        return None
    return "\n".join(f"{one.name}={_worded(getattr(options, one.name))}" for one in fields(options))


def _worded(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, (tuple, frozenset)):
        words = [_worded(one) for one in value]
        return " ".join(sorted(words) if isinstance(value, frozenset) else words)
    return getattr(value, "code", None) or str(value)
