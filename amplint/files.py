"""Which files a run looks at."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pathspec import GitIgnoreSpec

SKIPPED_FOLDERS = frozenset({"__pycache__", "venv", "node_modules", "build", "dist"})
"""Folders passed over below a given path, besides hidden ones."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to check: absolute path and size in bytes."""

    path: Path
    size: int


@dataclass(slots=True)
class Discovery:
    """The files found, in path order, and one line for every path that could not be read."""

    files: list[FoundFile] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def find_files(paths: Iterable[str], exclude: Sequence[str] = (), exclude_root: Path | None = None) -> Discovery:
    """The files named, whatever their extension, and the ``*.py`` files below the folders named.

    Hidden folders, ``__pycache__``, ``venv``, ``node_modules``, ``build``, ``dist``, what .gitignore files say, and
    ``exclude`` (patterns as in .gitignore, from ``exclude_root``) are passed over below a given folder, and never
    apply to the path given. A file reached twice is taken once.
    """
    discovery = Discovery()
    excluded = _spec(exclude, exclude_root or Path.cwd()) if exclude else None
    found: dict[str, FoundFile] = {}
    for given in paths:
        path = Path(os.path.abspath(given))
        try:
            status = path.stat()
        except FileNotFoundError:
            discovery.errors.append(f"no such file or directory: {given}")
            continue
        except OSError as error:
            discovery.errors.append(f"cannot read {given}: {error.strerror or error}")
            continue
        if path.suffix == ".ipynb":
            discovery.errors.append(f"cannot check {given}: notebooks are not read, only Python source")
        elif not path.is_dir():
            found.setdefault(os.path.realpath(path), FoundFile(path, status.st_size))
        else:
            walk = _Walk(_is_python, discovery.errors)
            real = os.path.realpath(path)
            for file in walk.files(path, _ignores_above(path, excluded)):
                key = os.path.realpath(file.path) if walk.linked else real + str(file.path)[len(str(path)) :]
                found.setdefault(key, file)
    discovery.files = sorted(found.values(), key=lambda file: file.path)
    return discovery


def files_below(folder: Path, wanted: Callable[[os.DirEntry[str]], bool], errors: list[str]) -> Iterator[FoundFile]:
    """The ``wanted`` files below an absolute folder, passing over what :func:`find_files` does.

    Adds one line to ``errors`` for every path that could not be read.
    """
    return _Walk(wanted, errors).files(folder, _ignores_above(folder, None))


def _is_python(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py")


@dataclass(frozen=True, slots=True)
class _Ignore:
    """Patterns and the folder that they are relative to."""

    root: Path
    spec: GitIgnoreSpec

    def decides(self, path: Path, folder: bool) -> bool | None:
        """True: ignored; False: taken back by a negated pattern; None: not mentioned."""
        try:
            name = path.relative_to(self.root).as_posix()
        except ValueError:
            return None
        return self.spec.check_file(name + "/" if folder else name).include


def _spec(lines: Iterable[str], root: Path) -> _Ignore:
    from pathspec import GitIgnoreSpec

    return _Ignore(root, GitIgnoreSpec.from_lines(lines))


def _gitignore(folder: Path) -> _Ignore | None:
    try:
        text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return _spec(text.splitlines(), folder)


def _ignores_above(path: Path, excluded: _Ignore | None) -> tuple[_Ignore, ...]:
    """The patterns of the folders above, up to the repository's root, that do not hide the given path itself."""
    ignores = [excluded] if excluded is not None else []
    if not (path / ".git").exists():
        above: list[_Ignore] = []
        for folder in path.parents:
            ignore = _gitignore(folder)
            if ignore is not None:
                above.insert(0, ignore)
            if (folder / ".git").exists():
                ignores.extend(above)
                break
    return tuple(ignore for ignore in ignores if not ignore.decides(path, folder=True))


class _Walk:
    """One folder given on the command line. ``linked`` is set once a symbolic link was followed."""

    def __init__(self, wanted: Callable[[os.DirEntry[str]], bool], errors: list[str]) -> None:
        self._wanted = wanted
        self._errors = errors
        self._visited: set[str] = set()
        self.linked = False

    def files(self, folder: Path, ignores: tuple[_Ignore, ...]) -> Iterator[FoundFile]:
        """The wanted files below a folder. Links to folders are followed, each folder once."""
        real = os.path.realpath(folder)
        if real in self._visited:
            return
        self._visited.add(real)
        own = _gitignore(folder)
        if own is not None:
            ignores = (*ignores, own)
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: (entry.is_symlink(), entry.name))
        except OSError as error:
            self._errors.append(f"cannot read {folder}: {error.strerror or error}")
            return
        for entry in entries:
            yield from self._entry(entry, Path(entry.path), ignores)

    def _entry(self, entry: os.DirEntry[str], path: Path, ignores: tuple[_Ignore, ...]) -> Iterator[FoundFile]:
        is_folder = entry.is_dir()
        if is_folder and (entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS):
            return
        if not is_folder and not self._wanted(entry):
            return
        if any(verdict for verdict in _verdicts(path, is_folder, ignores)):
            return
        self.linked = self.linked or entry.is_symlink()
        if is_folder:
            yield from self.files(path, ignores)
            return
        try:
            yield FoundFile(path, entry.stat().st_size)
        except OSError as error:
            self._errors.append(f"cannot read {path}: {error.strerror or error}")


def _verdicts(path: Path, folder: bool, ignores: tuple[_Ignore, ...]) -> Iterator[bool]:
    """The verdict of the deepest .gitignore that mentions a path; nothing where none does."""
    for ignore in reversed(ignores):
        verdict = ignore.decides(path, folder)
        if verdict is not None:
            yield verdict
            return


def display_path(path: Path) -> str:
    """The path relative to the current folder where it lies inside, else as it is."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
