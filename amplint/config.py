"""Settings of a project: ``[tool.amplint]`` in pyproject.toml, or amplint.toml."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

CONFIG_NAMES = ("amplint.toml", "pyproject.toml")
NEWEST_TORCH = (2, 13)


class UsageError(Exception):
    """The user asked for something that does not exist: one line for stderr, exit status 2."""


@dataclass(frozen=True, slots=True)
class Config:
    """Settings as written; None and empty tuples where the file is silent. ``root`` is the folder of the file."""

    root: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    device: str | None = None
    torch_version: str | None = None
    factories: dict[str, str] = field(default_factory=dict)


KEYS = ("select", "ignore", "extend-select", "exclude", "scenarios", "device", "torch-version", "factories")
_STRINGS = ("device", "torch-version")


def find_config(start: Path) -> Config:
    """The settings of the nearest configuration file at or above a folder; defaults where there is none.

    A pyproject.toml without ``[tool.amplint]`` is passed over. Raises UsageError for a file that is not valid.
    """
    for folder in (start, *start.parents):
        for name in CONFIG_NAMES:
            path = folder / name
            if path.is_file():
                table = _read(path)
                if table is not None:
                    return parse_config(table, path)
    return Config()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    if path.name == "pyproject.toml" and b"amplint" not in data:
        return None
    try:
        document = parse_toml(data.decode())
    except ValueError as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error
    if path.name != "pyproject.toml":
        return document
    table = document.get("tool", {}).get("amplint")
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{path}: tool.amplint must be a table")
    return table


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document. Raises ValueError."""
    module = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    document: dict[str, Any] = module.loads(text)
    return document


def parse_config(table: dict[str, Any], path: Path) -> Config:
    """Check the keys and types of one table. Raises UsageError that names the file and the nearest valid key."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            matches = get_close_matches(key, KEYS, n=1, cutoff=0.5)
            hint = f" (did you mean '{matches[0]}'?)" if matches else f"; known keys: {', '.join(KEYS)}"
            raise UsageError(f"{path}: unknown key '{key}'{hint}")
        if key in _STRINGS:
            if not isinstance(value, str):
                raise UsageError(f"{path}: '{key}' must be a string")
            values[key.replace("-", "_")] = value
        elif key == "factories":
            if not isinstance(value, dict) or not all(isinstance(item, str) and ":" in item for item in value.values()):
                raise UsageError(f"{path}: 'factories' must be a table of Class = 'FILE.py::function'")
            values[key] = dict(value)
        elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UsageError(f"{path}: '{key}' must be a list of strings")
        else:
            values[key.replace("-", "_")] = tuple(value)
    return Config(root=path.parent, **values)


def parse_torch_version(text: str) -> tuple[int, int]:
    """``2.4`` or ``2.4.1`` as (2, 4). Raises UsageError."""
    parts = text.strip().split("+")[0].split(".")
    if 2 <= len(parts) <= 3 and all(part.isdigit() for part in parts[:2]):
        return int(parts[0]), int(parts[1])
    raise UsageError(f"torch version '{text}' is not of the form X.Y, such as 2.4")


def common_folder(paths: Iterable[Path]) -> Path:
    """The folder in or above which all the paths lie, from where configuration is looked for."""
    folders = [str(path if path.is_dir() else path.parent) for path in paths]
    try:
        return Path(os.path.commonpath(folders)) if folders else Path.cwd()
    except ValueError:
        return Path.cwd()
