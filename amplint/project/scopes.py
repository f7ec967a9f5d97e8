"""Where the files of a project lie, in which uses of what one of them defines are looked for, and whether others may
use it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amplint import contents
from amplint.infer.names.folders import is_unpacked, member_of, project_around
from amplint.project.layout import BUILDS

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.infer.state.facts import FileFacts


class Scope(NamedTuple):
    """Where the files of a project lie: a folder, with those below it if ``whole``."""

    folder: Path
    whole: bool


def scope_of(facts: FileFacts) -> Scope:
    """Where the project of a file lies: a package at its root, or all of it.

    A folder of a package belongs to it without an ``__init__`` of its own too. Where packages lie within folders that
    are none, or nothing installs them, as in a repository of programs, the files beside them use them. A file of no
    package and no project may be a part of a program that is shown alone.
    """
    package = package_of(facts)
    project = project_around(package or facts.path)
    if package is not None and (project is None or (project == package.parent and is_installed(facts.path))):
        return Scope(package, whole=True)
    return Scope(facts.root[0], whole=False) if project is None else Scope(project, whole=True)


def is_installed(path: Path) -> bool:
    """Whether a file may be of a distribution, for others to import from: all of a marked project is, unless nothing
    around the file says how to build one."""
    project = project_around(path)
    if project is None:
        return True
    above = tuple(path.parents)
    return any(_is_distribution(folder, contents.age()) for folder in above[: above.index(project) + 1])


@lru_cache(maxsize=4096)
def _is_distribution(folder: Path, age: int) -> bool:
    return is_unpacked(folder) or any(_says(folder / name, words) for name, words in BUILDS.items())


def _says(file: Path, words: bytes) -> bool:
    try:
        return re.search(words, contents.read(file)) is not None
    except OSError:
        return False


def package_of(facts: FileFacts) -> Path | None:
    """The topmost package that a file belongs to; None where it is in none."""
    folder, package = facts.root if facts.root[1] else member_of(facts.root[0])
    return folder / package.partition(".")[0] if package else None
