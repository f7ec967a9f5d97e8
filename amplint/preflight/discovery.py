"""Which files preflight reads: scripts, configurations, and lists of packages."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from amplint.files import SKIPPED_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_BYTES = 1_000_000
"""Data files below folders that are larger are data, not settings."""

_REQUIREMENTS = ("requirements*.txt", "*-requirements.txt", "*_requirements.txt", "constraints*.txt")
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "pylock.*.toml")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read: absolute path, its kind (python, json, yaml, requirements, pyproject, lock), and whether it was
    named on the command line rather than found below a folder."""

    path: Path
    kind: str
    named: bool


@dataclass(slots=True)
class Inputs:
    """Files in path order, and one line for every path that cannot be read."""

    files: list[InputFile] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def find_inputs(paths: Iterable[str]) -> Inputs:
    """The files named, and the settings below the folders named.

    Below a folder, hidden folders and those that ``amplint check`` skips are passed over, and what .gitignore files
    from the folder downwards say.
    """
    inputs = Inputs()
    found: dict[Path, InputFile] = {}
    for given in paths:
        path = Path(os.path.abspath(given))
        if path.is_dir():
            for file in _below(path, (), inputs.errors):
                found.setdefault(file.path, file)
            continue
        kind = kind_of(path.name)
        if not path.exists():
            inputs.errors.append(f"no such file or directory: {given}")
        elif kind is None:
            inputs.errors.append(
                f"cannot read settings from {given}: known are .py, .json, .yaml and .yml files, requirements*.txt, "
                f"pyproject.toml and {', '.join(_LOCKS[:4])}"
            )
        else:
            found[path] = InputFile(path, kind, named=True)
    inputs.files = sorted(found.values(), key=lambda file: file.path)
    return inputs


def kind_of(name: str) -> str | None:
    """What a file of that name holds; None for anything else."""
    if name == "pyproject.toml":
        return "pyproject"
    if any(fnmatch(name, pattern) for pattern in _LOCKS):
        return "lock"
    if any(fnmatch(name, pattern) for pattern in _REQUIREMENTS):
        return "requirements"
    return {".py": "python", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}.get(Path(name).suffix.lower())


def _below(folder: Path, ignores: Sequence[tuple[Path, GitIgnoreSpec]], errors: list[str]) -> Iterator[InputFile]:
    try:
        lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
        ignores = (*ignores, (folder, GitIgnoreSpec.from_lines(lines)))
    except OSError:
        pass
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        errors.append(f"cannot read {folder}: {error.strerror or error}")
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith(".") or _is_ignored(path, entry.is_dir(), ignores):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in SKIPPED_FOLDERS:
                yield from _below(path, ignores, errors)
            continue
        kind = kind_of(entry.name)
        if kind is not None and entry.is_file() and (kind not in ("json", "yaml") or entry.stat().st_size <= MAX_BYTES):
            yield InputFile(path, kind, named=False)


def _is_ignored(path: Path, folder: bool, ignores: Sequence[tuple[Path, GitIgnoreSpec]]) -> bool:
    """What the deepest .gitignore that mentions the path says."""
    for root, spec in reversed(ignores):
        verdict = spec.check_file(path.relative_to(root).as_posix() + ("/" if folder else "")).include
        if verdict is not None:
            return verdict
    return False
