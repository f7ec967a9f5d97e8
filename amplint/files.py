"""Which files a run looks at."""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.notebook import SUFFIX as NOTEBOOK
from amplint.passed_over import APPLE, EXCLUDED, HIDDEN, IGNORED, NOTEBOOKS, Passed, PassedOver
from amplint.patterns import GITIGNORE, gitignore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amplint.config import Config, Configurations
    from amplint.patterns import Patterns

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
    paths: Iterable[str],
    configurations: Configurations | None = None,
    *,
    force: bool = True,
    notebooks: bool = True,
) -> Discovery:
    """The files named, whatever their extension, and the ``*.py`` and ``*.ipynb`` files below the folders named.

    Without ``notebooks``, those below folders are passed over, and one that is named is an error.

    Hidden folders, ``__pycache__``, ``venv``, ``node_modules``, ``build``, ``dist``, what .gitignore files say, and
    what the configuration of a folder excludes in it (patterns as in .gitignore, relative to the configuration's
    folder) are passed over below a given folder, and never apply to the path given, except that what is excluded does
    where the configuration forces it (``force``: where that counts). A file reached twice is taken once.
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
        forced = forced_out(path, configurations) if force else None
        if forced is not None:
            discovery.passed_over.count([forced])
        elif path.suffix == NOTEBOOK and not notebooks:
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
    discovery.files = sorted(found.values(), key=lambda file: file.path.parts)
    return discovery


def files_below(folder: Path, wanted: Callable[[os.DirEntry[str]], bool], errors: list[str]) -> list[FoundFile]:
    """The ``wanted`` files below an absolute folder, passing over what :func:`find_files` does without configuration.

    Adds one line to ``errors`` for every path that could not be read.
    """
    return _Walk(folder, wanted, errors).files()


def _is_python(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py")


def _is_checked(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith((".py", NOTEBOOK))


def forced_out(path: Path, configurations: Configurations | None) -> Passed | None:
    """Why an absolute path is passed over though it is given: its configuration excludes it, and forces that."""
    if configurations is None:
        return None
    config = configurations.of(path if path.is_dir() else path.parent)
    if config is None or not config.force_exclude:
        return None
    for exclude in config.excludes:
        pattern = exclude.leave_out(path, folder=path.is_dir(), below=path.parent)
        if pattern is not None:
            return Passed(path, EXCLUDED, _because(pattern, exclude))
    return None


def _because(pattern: str, stated: Patterns) -> str:
    return f"'{pattern}' in {display_path(Path(stated.stated_in))}"


def _ignores_above(path: Path) -> tuple[Patterns, ...]:
    """The .gitignore files above, up to the repository's root, that do not hide the given path itself."""
    if (path / ".git").exists():
        return ()
    above: list[Patterns] = []
    for folder in path.parents:
        ignore = gitignore(folder)
        if ignore is not None:
            above.insert(0, ignore)
        if (folder / ".git").exists():
            return tuple(ignore for ignore in above if not _hides(ignore, path))
    return ()


def _hides(ignore: Patterns, path: Path) -> bool:
    decision = ignore.decision(path, folder=True, below=path)
    return decision is not None and decision.out


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
        self._excludes: dict[Path | None, tuple[Patterns, ...]] = {}
        self._visited: set[str] = set()
        self.linked = False
        self.passed: list[Passed] = []
        self._found: list[FoundFile] = []

    def files(self) -> list[FoundFile]:
        """The wanted files below the folder. Links to folders are followed, each folder once."""
        self._below(self._given, os.path.realpath(self._given), _ignores_above(self._given))
        return self._found

    def _below(self, folder: Path, real: str, ignores: tuple[Patterns, ...]) -> None:
        """Find the files below a folder, which is ``real`` whatever links lead there."""
        if real in self._visited:
            return
        self._visited.add(real)
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: (entry.is_symlink(), entry.name))
        except OSError as error:
            self._errors.append(f"cannot read {folder}: {error.strerror or error}")
            return
        own = gitignore(folder) if any(entry.name == GITIGNORE for entry in entries) else None
        if own is not None:
            ignores = (*ignores, own)
        config = self._configurations.of(folder) if self._configurations is not None else None
        excludes = self._excludes_of(config) if config is not None else ()
        respected = ignores if config is None or config.respect_gitignore else ()
        for entry in entries:
            is_folder = entry.is_dir()
            wanted = is_folder or self._wanted(entry)
            if not wanted and not entry.name.endswith(NOTEBOOK):
                continue
            path = folder / entry.name
            passed = self._passed(path, is_folder, excludes, respected)
            if passed is None and not wanted:
                passed = Passed(path, NOTEBOOKS)
            if passed is not None:
                self.passed.append(passed)
            elif is_folder:
                self.linked = self.linked or entry.is_symlink()
                below = os.path.realpath(path) if entry.is_symlink() else os.path.join(real, entry.name)
                self._below(path, below, ignores)
            else:
                self._take(entry, path)

    def _excludes_of(self, config: Config) -> tuple[Patterns, ...]:
        """What a configuration excludes, but for the patterns that hide the given folder itself."""
        if config.path not in self._excludes:
            self._excludes[config.path] = tuple(exclude.sparing(self._given) for exclude in config.excludes)
        return self._excludes[config.path]

    def _passed(
        self, path: Path, is_folder: bool, excludes: tuple[Patterns, ...], ignores: tuple[Patterns, ...]
    ) -> Passed | None:
        """Why a path is passed over, if it is."""
        reason = _skipped(path.name) if is_folder else APPLE if path.name.startswith("._") else None
        if reason is not None:
            return Passed(path, reason)
        for exclude in excludes:
            decision = exclude.decision(path, folder=is_folder, below=self._given)
            if decision is not None and decision.out:
                return Passed(path, EXCLUDED, _because(decision.pattern, exclude))
        for ignore in reversed(ignores):
            decision = ignore.decision(path, folder=is_folder, below=self._given)
            if decision is not None:
                return Passed(path, IGNORED, _because(decision.pattern, ignore)) if decision.out else None
        return None

    def _take(self, entry: os.DirEntry[str], path: Path) -> None:
        self.linked = self.linked or entry.is_symlink()
        try:
            self._found.append(FoundFile(path, entry.stat().st_size))
        except OSError as error:
            self._errors.append(f"cannot read {path}: {error.strerror or error}")


def _skipped(name: str) -> str | None:
    """Why a folder of that name is passed over wherever it lies, if so."""
    if name.startswith("."):
        return HIDDEN
    return f"in {name}" if name in SKIPPED_FOLDERS else None


def place_name(path: Path, cell: int | None) -> str:
    """:func:`display_path`, and the cell where the file is a notebook."""
    return display_path(path) + (f":cell {cell}" if cell is not None else "")


def display_path(path: Path) -> str:
    """The path relative to the current folder where it lies inside, else as it is."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
