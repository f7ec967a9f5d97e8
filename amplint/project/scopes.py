"""Where the files of a project lie, in which uses of what one of them defines are looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.names.folders import project_around, root_of

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
    are none, as in a repository of programs, the files beside them use them. A file of no package and no project may
    be a part of a program that is shown alone.
    """
    package = package_of(facts)
    project = project_around(package or facts.path)
    if package is not None and project in (None, package.parent):
        return Scope(package, whole=True)
    return Scope(facts.root[0], whole=False) if project is None else Scope(project, whole=True)


def package_of(facts: FileFacts) -> Path | None:
    """The topmost package that a file belongs to; None where it is in none."""
    folder, package = facts.root
    for around in (folder, folder.parent) if not package else ():
        outer, package = root_of(around.parent)
        if package:
            return outer / package.partition(".")[0]
    return folder / package.partition(".")[0] if package else None
