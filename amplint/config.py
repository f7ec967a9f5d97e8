"""Settings: ``[tool.amplint]`` in pyproject.toml, or amplint.toml; for each file those of the nearest one."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG_NAMES = ("amplint.toml", "pyproject.toml")
OLDEST_TORCH = (1, 13)
NEWEST_TORCH = (2, 15)


class UsageError(Exception):
    """The user asked for something that does not exist: one line for stderr, exit status 2."""


@dataclass(frozen=True, slots=True)
class Config:
    """Settings as written in the file ``path``; None and empty tuples where it is silent."""

    path: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    device: str | None = None
    torch_version: str | None = None
    baseline: str | None = None
    plugins: tuple[str, ...] = ()
    factories: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path | None:
        """The folder of the file, which paths in it are relative to."""
        return self.path.parent if self.path is not None else None

    @property
    def baseline_path(self) -> Path | None:
        """The baseline that it names, relative to its folder."""
        return self.root / self.baseline if self.root is not None and self.baseline is not None else None

    @property
    def selectors(self) -> tuple[str, ...]:
        """Every rule, prefix or name that it mentions."""
        return (*self.select, *self.ignore, *self.extend_select)


KEYS = (
    *("select", "ignore", "extend-select", "exclude", "scenarios", "device", "torch-version", "baseline", "plugins"),
    "factories",
)
_STRINGS = ("device", "torch-version", "baseline")


class Configurations:
    """The configuration that holds in each folder: that of the nearest file at or above it, read once.

    ``only`` is one file that holds everywhere instead; ``isolated`` means defaults everywhere. Raises UsageError for
    an ``only`` that is not valid. ``errors`` has one line for each other file that was looked for and is not.
    """

    def __init__(self, *, only: str | None = None, isolated: bool = False) -> None:
        if only is not None and isolated:
            raise UsageError("--config and --isolated contradict each other")
        self.errors: list[str] = []
        self._everywhere = Config() if isolated else _given(only) if only is not None else None
        self._by_folder: dict[Path, Config | None] = {}

    def of(self, folder: Path) -> Config | None:
        """The configuration of an absolute folder; defaults where there is none, None where it is not valid."""
        if self._everywhere is not None:
            return self._everywhere
        if folder not in self._by_folder:
            try:
                own = _in_folder(folder)
            except UsageError as error:
                self.errors.append(str(error))
                self._by_folder[folder] = None
            else:
                at_root = folder.parent == folder
                self._by_folder[folder] = own or (Config() if at_root else self.of(folder.parent))
        return self._by_folder[folder]


def find_config(folder: Path) -> Config:
    """The configuration that holds in one absolute folder. Raises UsageError where it is not valid."""
    configurations = Configurations()
    config = configurations.of(folder)
    if config is None:
        raise UsageError(configurations.errors[0])
    return config


def _in_folder(folder: Path) -> Config | None:
    """What a folder's own file says; a pyproject.toml without ``[tool.amplint]`` says nothing."""
    for name in CONFIG_NAMES:
        path = folder / name
        if path.is_file():
            table = _read(path)
            if table is not None:
                return parse_config(table, path)
    return None


def _given(name: str) -> Config:
    path = Path(name).absolute()
    table = _read(path)
    if table is None:
        raise UsageError(f"{name} has no table [tool.amplint]")
    return parse_config(table, path)


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
    return Config(path=path, **values)


def parse_torch_version(text: str) -> tuple[int, int]:
    """``2.4`` or ``2.4.1`` as (2, 4). Raises UsageError for what is no release that the tables know."""
    parts = text.strip().split("+")[0].split(".")
    if not (2 <= len(parts) <= 3 and all(part.isdecimal() for part in parts[:2])):
        raise UsageError(f"torch version '{text}' is not of the form X.Y, such as 2.4")
    release = int(parts[0]), int(parts[1])
    if release not in known_releases():
        oldest, newest = (".".join(map(str, end)) for end in (OLDEST_TORCH, NEWEST_TORCH))
        raise UsageError(f"torch version '{text}' is not known; known are {oldest} to {newest}")
    return release


def known_releases() -> Iterator[tuple[int, int]]:
    """The releases of torch that the tables know, oldest first."""
    yield OLDEST_TORCH
    for minor in range(NEWEST_TORCH[1] + 1):
        yield NEWEST_TORCH[0], minor
