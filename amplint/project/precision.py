"""What a project does about precision: where it names autocast, a 16-bit dtype, or a setting for them."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amplint import contents
from amplint.infer.names.folders import LIBRARY_FOLDERS
from amplint.infer.syntax.scripts import precision_asked
from amplint.project.files import TooLargeError, parsed, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = (b"autocast", b"float16", b"fp16", b"bf16", b"GradScaler", b"precision", b"half")
"""Without any of these, a file asks for no low precision."""
_SETTINGS = (".yaml", ".yml")
_STATES_A_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_ABOVE = 3
"""Folders above the topmost package in which a project's own file may lie: ``src``, or one for several packages."""


class Asked(NamedTuple):
    """A place that asks for low precision, by its line and the word there: ``autocast``, ``bfloat16``."""

    path: Path
    row: int
    word: str


def asks_anywhere(root: Path, package: str) -> bool:
    """Whether anything in the project of a file asks for low precision, or may: there is too much to read, or the file
    is of no project. ``root`` and ``package`` are as :func:`project_of` has them."""
    project = project_of(root, package)
    return project is None or _asks(project, contents.age())


def project_of(root: Path, package: str) -> Path | None:
    """The folder of the project of a file: the nearest above that says it is one, else the topmost package.

    ``root`` and ``package`` say where the file lies, as :func:`amplint.infer.names.folders.root_of` has them.
    """
    topmost = root / package.partition(".")[0] if package else root
    return _stated(topmost) or (topmost if package else None)


def places(project: Path) -> Iterator[Asked]:
    """Where a project asks for low precision: the first place of each file and word. Raises TooLargeError."""
    for path, data in read_all(_files(project)):
        if not any(word in data for word in _WORDS):
            continue
        if path.suffix in _SETTINGS:
            yield from _settings(path, data)
            continue
        source = parsed(path)
        rows: dict[str, int] = {}
        for word, node in precision_asked(source.tree) if source is not None else ():
            row = getattr(node, "lineno", 0)
            rows[word] = min(row, rows.get(word, row))
        yield from (Asked(path, row, word) for word, row in sorted(rows.items()))


def _settings(path: Path, data: bytes) -> Iterator[Asked]:
    for row, line in enumerate(data.splitlines(), 1):
        word = next((word for word in _WORDS if word in line.partition(b"#")[0]), None)
        if word is not None:
            yield Asked(path, row, word.decode())
            return


def _stated(folder: Path) -> Path | None:
    for above in (folder, *list(folder.parents)[:_ABOVE]):
        if above.name in LIBRARY_FOLDERS:
            return None
        if any((above / name).is_file() for name in _STATES_A_PROJECT):
            return above
    return None


@lru_cache(maxsize=256)
def _asks(project: Path, age: int) -> bool:
    try:
        return next(places(project), None) is not None
    except TooLargeError:
        return True


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in LIBRARY_FOLDERS)
        yield from (Path(parent, name) for name in sorted(names) if name.endswith((".py", *_SETTINGS)))
