"""Whether a project does anything about precision at all: names autocast, a 16-bit dtype, or a setting for them."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from amplint import contents
from amplint.infer.names.namespace import LIBRARY_FOLDERS
from amplint.infer.syntax.scripts import asks_for_low_precision
from amplint.project.files import MAX_SEARCHED_BYTES, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = (b"autocast", b"float16", b"fp16", b"bf16", b"GradScaler", b"precision", b"half")
"""Without any of these, a file asks for no low precision."""
_SETTINGS = (".yaml", ".yml")
_STATES_A_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_ABOVE = 3
"""Folders above the topmost package in which a project's own file may lie: ``src``, or one for several packages."""


def asks_anywhere(root: Path, package: str) -> bool:
    """Whether anything in the project of a file asks for low precision, or may: there is too much to read, or the file
    is of no project.

    ``root`` and ``package`` say where the file lies, as :attr:`amplint.infer.state.facts.FileFacts.root` has them. The
    project is the nearest folder above that says it is one, else the topmost package.
    """
    topmost = root / package.partition(".")[0] if package else root
    project = _stated(topmost) or (topmost if package else None)
    return project is None or _asks(project, contents.age())


def _stated(folder: Path) -> Path | None:
    for above in (folder, *list(folder.parents)[:_ABOVE]):
        if above.name in LIBRARY_FOLDERS:
            return None
        if any((above / name).is_file() for name in _STATES_A_PROJECT):
            return above
    return None


@lru_cache(maxsize=256)
def _asks(folder: Path, age: int) -> bool:
    size = 0
    for path in _files(folder):
        try:
            data = contents.read(path)
        except OSError:
            continue
        size += len(data)
        if size > MAX_SEARCHED_BYTES:
            return True
        if not any(word in data for word in _WORDS):
            continue
        if path.suffix in _SETTINGS:
            return True
        source = parsed(path)
        if source is not None and asks_for_low_precision(source.tree):
            return True
    return False


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in LIBRARY_FOLDERS]
        yield from (Path(parent, name) for name in names if name.endswith((".py", *_SETTINGS)))
