"""Where absolute imports of a file start, what its project is, and which folders hold installed libraries."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LIBRARY_FOLDERS = ("site-packages", "dist-packages")
MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""What the root of a project holds one of; else what describes the distribution that it is (PEP 427)."""


def root_of(folder: Path) -> tuple[Path, str]:
    """The folder that absolute imports start from in the files of a folder, and the dotted name of their package."""
    parts: list[str] = []
    while is_file(folder / "__init__.py") and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


FOLDERS_BETWEEN = 8
"""Folders up to which one without an ``__init__`` may lie below a package."""


def member_of(folder: Path) -> tuple[Path, str]:
    """What :func:`root_of` says for a folder without an ``__init__`` that lies below a package, to which it belongs all
    the same (PEP 420); the folder and no name where it does not."""
    return _member_of(folder, contents.age())


@lru_cache(maxsize=4096)
def _member_of(folder: Path, age: int) -> tuple[Path, str]:
    for around in (folder, *folder.parents)[: FOLDERS_BETWEEN + 1]:
        if around.name in LIBRARY_FOLDERS:
            break
        root, package = root_of(around)
        if package:
            return root, ".".join(folder.relative_to(root).parts)
    return folder, ""


def is_file(path: Path) -> bool:
    """Whether there is a file that can be asked for; not so under a name too long, or in a folder closed to us."""
    try:
        return path.is_file()
    except OSError:
        return False


def project_around(path: Path) -> Path | None:
    """The outermost folder above that is marked as a project, below what holds libraries; None if none is."""
    found = None
    for folder in path.parents:
        if folder.name in LIBRARY_FOLDERS:
            break
        if _is_marked(folder, contents.age()):
            found = folder
    return found


@lru_cache(maxsize=4096)
def _is_marked(folder: Path, age: int) -> bool:
    return any((folder / mark).exists() for mark in MARKS) or is_unpacked(folder)


def is_unpacked(folder: Path) -> bool:
    """Whether a folder holds one distribution as a wheel unpacks it, and no other."""
    try:
        return sum(name.endswith(".dist-info") for name in os.listdir(folder)) == 1
    except OSError:
        return False


def starts(root: Path) -> tuple[Path, ...]:
    """Where absolute imports may start, the nearest first: where they do by the packages around a file, then the
    folders above, up to that of the project, from which its programs are run."""
    project = project_around(root / "_")
    if project is None:
        return (root,)
    above = tuple(root.parents)
    return (root, *above[: above.index(project) + 1]) if project in above else (root,)


def starts_of(module: str, root: Path, package: str) -> tuple[Path, ...]:
    """Where the absolute import of a module may start, in a file of a package (empty: of none) below a root; of another
    installed library, only inside of the package."""
    around, member = (root, package) if package else member_of(root)
    if module.partition(".")[0] == member.partition(".")[0]:
        return (around,)
    outer = () if root.name in LIBRARY_FOLDERS else starts(root)
    more = (around,) if around not in outer and around.name not in LIBRARY_FOLDERS else ()
    return (*outer, *more, *_inside(module, root, package))


def _inside(module: str, root: Path, package: str) -> Iterator[Path]:
    """The folders of a package, the nearest first, that have the outermost package of a module: what was copied into
    another package imports itself as before, by a search path that programs extend."""
    first, _, rest = module.partition(".")
    names = package.split(".") if package and rest else []
    for count in range(len(names), 0, -1):
        folder = root.joinpath(*names[:count])
        if _is_package(folder / first, contents.age()):
            yield folder


@lru_cache(maxsize=8192)
def _is_package(folder: Path, age: int) -> bool:
    return is_file(folder / "__init__.py")


def module_file(folders: Iterable[Path], module: str) -> Path | None:
    """The file of a module in the first of some folders that has it: of a package, which goes before a module of its
    name as it does for Python, the ``__init__``; of no module, that of the folder itself."""
    for folder in folders:
        path = folder.joinpath(*module.split("."))
        for file in (path / "__init__.py", path.with_suffix(".py")) if module else (path / "__init__.py",):
            if is_file(file):
                return file
    return None
