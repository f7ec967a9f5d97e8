"""Which files a run looks at."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.notebook import SUFFIX as NOTEBOOK
from amplint.passed_over import EXCLUDED, HIDDEN, IGNORED, NOTEBOOKS, PassedOver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pathspec import GitIgnoreSpec

    from amplint.config import Configurations

SKIPPED_FOLDERS = frozenset({"__pycache__", "venv", "node_modules", "build", "dist"})
"""Folders passed over below a given path, besides hidden ones."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to check: absolute path and size in bytes."""

    path: Path
    size: int


@dataclass(slots=True)
class Discovery:
    """The files found, in path order, one line for every path that could not be read, and what was passed over."""

    files: list[FoundFile] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    passed_over: PassedOver = field(default_factory=PassedOver)


def find_files(
    paths: Iterable[str], configurations: Configurations | None = None, *, notebooks: bool = True
) -> Discovery:
    """The files named, whatever their extension, and the ``*.py`` and ``*.ipynb`` files below the folders named.

    Without ``notebooks``, those below folders are passed over, and one that is named is an error.

    Hidden folders, ``__pycache__``, ``venv``, ``node_modules``, ``build``, ``dist``, what .gitignore files say, and
    what the configuration of a folder excludes in it (patterns as in .gitignore, relative to the configuration's
    folder) are passed over below a given folder, and never apply to the path given. A file reached twice is taken once.
    """
    discovery = Discovery()
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
        if path.suffix == NOTEBOOK and not notebooks:
            discovery.errors.append(f"{given} is a notebook: only check reads notebooks, other commands Python source")
        elif not path.is_dir():
            found.setdefault(os.path.realpath(path), FoundFile(path, status.st_size))
        else:
            walk = _Walk(path, _is_checked if notebooks else _is_python, discovery.errors, configurations)
            real = os.path.realpath(path)
            for file in walk.files():
                key = os.path.realpath(file.path) if walk.linked else real + str(file.path)[len(str(path)) :]
                found.setdefault(key, file)
            discovery.passed_over.count(walk.passed)
    discovery.files = sorted(found.values(), key=lambda file: file.path)
    return discovery


def files_below(folder: Path, wanted: Callable[[os.DirEntry[str]], bool], errors: list[str]) -> Iterator[FoundFile]:
    """The ``wanted`` files below an absolute folder, passing over what :func:`find_files` does without configuration.

    Adds one line to ``errors`` for every path that could not be read.
    """
    return _Walk(folder, wanted, errors).files()


def _is_python(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py")


def _is_checked(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith((".py", NOTEBOOK))


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


def _ignores_above(path: Path) -> tuple[_Ignore, ...]:
    """The .gitignore files above, up to the repository's root, that do not hide the given path itself."""
    if (path / ".git").exists():
        return ()
    above: list[_Ignore] = []
    for folder in path.parents:
        ignore = _gitignore(folder)
        if ignore is not None:
            above.insert(0, ignore)
        if (folder / ".git").exists():
            return tuple(ignore for ignore in above if not ignore.decides(path, folder=True))
    return ()


class _Walk:
    """One folder given on the command line.

    ``linked`` is set once a symbolic link was followed; ``passed`` holds what was passed over, with the reason.
    """

    def __init__(
        self,
        given: Path,
        wanted: Callable[[os.DirEntry[str]], bool],
        errors: list[str],
        configurations: Configurations | None = None,
    ) -> None:
        self._given = given
        self._wanted = wanted
        self._errors = errors
        self._configurations = configurations
        self._excludes: dict[Path | None, _Ignore | None] = {}
        self._visited: set[str] = set()
        self.linked = False
        self.passed: list[tuple[Path, str]] = []

    def files(self) -> Iterator[FoundFile]:
        """The wanted files below the folder. Links to folders are followed, each folder once."""
        return self._below(self._given, _ignores_above(self._given))

    def _below(self, folder: Path, ignores: tuple[_Ignore, ...]) -> Iterator[FoundFile]:
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
        exclude = self._exclude_in(folder)
        for entry in entries:
            yield from self._entry(entry, Path(entry.path), ignores, exclude)

    def _exclude_in(self, folder: Path) -> _Ignore | None:
        """What the folder's configuration excludes, unless that hides the given folder itself."""
        config = self._configurations.of(folder) if self._configurations is not None else None
        if config is None or config.root is None or not config.exclude:
            return None
        if config.path not in self._excludes:
            exclude = _spec(config.exclude, config.root)
            hides = exclude.decides(self._given, folder=True)
            self._excludes[config.path] = None if hides else exclude
        return self._excludes[config.path]

    def _entry(
        self, entry: os.DirEntry[str], path: Path, ignores: tuple[_Ignore, ...], exclude: _Ignore | None
    ) -> Iterator[FoundFile]:
        is_folder = entry.is_dir()
        wanted = is_folder or self._wanted(entry)
        if not wanted and not entry.name.endswith(NOTEBOOK):
            return
        reason = _skipped(entry.name) if is_folder else None
        if reason is None and exclude is not None and exclude.decides(path, is_folder):
            reason = EXCLUDED
        if reason is None and _is_ignored(path, is_folder, ignores):
            reason = IGNORED
        if reason is not None or not wanted:
            self.passed.append((path, reason or NOTEBOOKS))
            return
        self.linked = self.linked or entry.is_symlink()
        if is_folder:
            yield from self._below(path, ignores)
            return
        try:
            yield FoundFile(path, entry.stat().st_size)
        except OSError as error:
            self._errors.append(f"cannot read {path}: {error.strerror or error}")


def _skipped(name: str) -> str | None:
    """Why a folder of that name is passed over wherever it lies, if so."""
    if name.startswith("."):
        return HIDDEN
    return f"in {name}" if name in SKIPPED_FOLDERS else None


def _is_ignored(path: Path, folder: bool, ignores: tuple[_Ignore, ...]) -> bool:
    """The verdict of the deepest .gitignore that mentions a path."""
    verdicts = (ignore.decides(path, folder) for ignore in reversed(ignores))
    return bool(next((verdict for verdict in verdicts if verdict is not None), False))


def place_name(path: Path, cell: int | None) -> str:
    """:func:`display_path`, and the cell where the file is a notebook."""
    return display_path(path) + (f":cell {cell}" if cell is not None else "")


def display_path(path: Path) -> str:
    """The path relative to the current folder where it lies inside, else as it is."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
