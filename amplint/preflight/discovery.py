"""Which files preflight reads: scripts, configurations, and lists of packages."""

from __future__ import annotations

import os
from dataclasses import field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.files import files_below
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

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

    Below a folder, hidden files and what ``amplint check`` skips are passed over.
    """
    inputs = Inputs()
    found: dict[str, InputFile] = {}
    for given in paths:
        path = Path(os.path.abspath(given))
        if path.is_dir():
            for below in files_below(path, _is_wanted, inputs.errors):
                kind = kind_of(below.path.name)
                if kind is not None:
                    found.setdefault(os.path.realpath(below.path), InputFile(below.path, kind, named=False))
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
            found[os.path.realpath(path)] = InputFile(path, kind, named=True)
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


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    kind = kind_of(entry.name)
    if kind is None or entry.name.startswith(".") or not entry.is_file():
        return False
    return kind not in ("json", "yaml") or entry.stat().st_size <= MAX_BYTES
