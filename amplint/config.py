"""Settings: ``[tool.amplint]`` in pyproject.toml, or amplint.toml; for each file those of the nearest one."""

from __future__ import annotations

import os
import sys
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.config_keys import KeyProblem, values_of
from amplint.frozen import dataclass
from amplint.patterns import PatternProblem, Patterns, patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.finding import Certainty, Severity

CONFIG_NAMES = ("amplint.toml", "pyproject.toml")
OLDEST_TORCH = (1, 13)
NEWEST_TORCH = (2, 15)


class UsageError(Exception):
    """The user asked for something that does not exist: one line for stderr, exit status 2."""


@dataclass(frozen=True, slots=True)
class FileIgnores:
    """The rules that do not count in some files: those that match ``pattern``, or with ``!`` those that do not."""

    pattern: Patterns
    negated: bool
    codes: tuple[str, ...]

    def hold(self, path: Path) -> bool:
        """Whether they do not count in the file of an absolute path."""
        return (self.pattern.leave_out(path, folder=False, below=Path(path.anchor)) is not None) is not self.negated


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the file ``path`` and those that it extends; None and empty tuples where they are silent.

    ``parts`` are what each of these files says for itself, its own first. ``per_file_ignores`` are by pattern.
    """

    path: Path | None = None
    extend: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()
    per_file_ignores: dict[str, FileIgnores] = field(default_factory=dict)
    exclude: tuple[Patterns, ...] = ()
    extend_exclude: tuple[Patterns, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    scenarios: tuple[str, ...] = ()
    device: str | None = None
    torch_version: str | None = None
    baseline: Path | None = None
    min_certainty: Certainty | None = None
    min_severity: Severity | None = None
    unsafe_fixes: bool = False
    output_format: str | None = None
    plugins: tuple[str, ...] = ()
    factories: dict[str, str] = field(default_factory=dict)
    parts: tuple[Config, ...] = ()

    @property
    def root(self) -> Path | None:
        """The folder of the file, which paths in it are relative to."""
        return self.path.parent if self.path is not None else None

    @property
    def selectors(self) -> tuple[str, ...]:
        """Every rule, prefix or name that it mentions."""
        per_file = (code for ignores in self.per_file_ignores.values() for code in ignores.codes)
        return (*self.select, *self.ignore, *self.extend_select, *self.extend_ignore, *per_file)

    @property
    def excludes(self) -> tuple[Patterns, ...]:
        """The patterns of all that is excluded."""
        return (*self.exclude, *self.extend_exclude)

    def ignored_in(self, path: Path) -> tuple[str, ...]:
        """The rules that do not count in the file of an absolute path, as codes, prefixes and names."""
        return tuple(code for one in self.per_file_ignores.values() if one.hold(path) for code in one.codes)


class Configurations:
    """The configuration that holds in each folder: that of the nearest file at or above it, read once.

    ``only`` is one file that holds everywhere instead; ``isolated`` means defaults everywhere. ``changed`` is
    what the command line makes of each. Raises UsageError for an ``only`` that is not valid. ``errors`` has one line
    for each other file that was looked for and is not.
    """

    def __init__(
        self,
        *,
        only: str | None = None,
        isolated: bool = False,
        changed: Callable[[Config], Config] = lambda config: config,
    ) -> None:
        if only is not None and isolated:
            raise UsageError("--config and --isolated contradict each other")
        self.errors: list[str] = []
        self._changed = changed
        self._everywhere = changed(Config()) if isolated else changed(_given(only)) if only is not None else None
        self._by_folder: dict[Path, Config | None] = {}

    def of(self, folder: Path) -> Config | None:
        """The configuration of an absolute folder; defaults where there is none, None where it is not valid."""
        if self._everywhere is not None:
            return self._everywhere
        if folder not in self._by_folder:
            try:
                own = _in_folder(folder)
            except UsageError as error:
                if str(error) not in self.errors:
                    self.errors.append(str(error))
                self._by_folder[folder] = None
            else:
                nearest = own if own is not None or folder.parent != folder else Config()
                self._by_folder[folder] = self._changed(nearest) if nearest is not None else self.of(folder.parent)
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
        if os.path.isfile(os.path.join(folder, name)):
            path = folder / name
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
    """The settings of one table and of the files that it extends. Raises UsageError that names the file."""
    chain = list(_chain(table, path))
    merged: dict[str, Any] = {}
    for _, values in reversed(chain):
        for key, value in values.items():
            if key in _ADDING:
                merged[key] = (*merged.get(key, ()), *value)
            elif isinstance(value, dict):
                merged[key] = {**merged.get(key, {}), **value}
            else:
                merged[key] = value
    return Config(path=path, **merged, parts=tuple(Config(path=part, **values) for part, values in chain))


_ADDING = frozenset(("extend_select", "extend_ignore", "extend_exclude", "plugins"))
"""Keys to which an extending file adds; it replaces the others, and tables entry by entry."""


def _chain(table: dict[str, Any], path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A file and those that it extends, nearest first, with what each says. Raises UsageError."""
    seen: list[Path] = []
    while True:
        values = _values(table, path, extended=bool(seen))
        yield path, values
        seen.append(path)
        if "extend" not in values:
            return
        base = Path(os.path.abspath(path.parent / Path(values["extend"]).expanduser()))
        if base in seen:
            way = " -> ".join(map(str, (*seen[seen.index(base) :], base)))
            raise UsageError(f"{path}: 'extend' leads back to where it began: {way}")
        try:
            found = _read(base)
        except UsageError as error:
            raise UsageError(f"{path}: 'extend': {error}") from error
        if found is None:
            raise UsageError(f"{path}: 'extend': {base} has no table [tool.amplint]")
        table, path = found, base


def _values(table: dict[str, Any], path: Path, *, extended: bool) -> dict[str, Any]:
    """What one file says, with its patterns and, where others extend it, its paths tied to its folder."""
    try:
        values = values_of(table)
        for key in ("exclude", "extend_exclude"):
            if key in values:
                values[key] = (patterns(path.parent, values[key], str(path)),)
        ignores = values.get("per_file_ignores", {})
        for pattern, codes in ignores.items():
            ignores[pattern] = file_ignores(path.parent, pattern, codes, str(path))
    except (KeyProblem, PatternProblem) as error:
        raise UsageError(f"{path}: {error}") from error
    if "baseline" in values:
        values["baseline"] = path.parent / values["baseline"]
    for name, builder in values.get("factories", {}).items() if extended else ():
        file, separator, function = builder.partition("::")
        if separator:
            values["factories"][name] = f"{path.parent / file}::{function}"
    return values


def file_ignores(root: Path, pattern: str, codes: tuple[str, ...], stated_in: str) -> FileIgnores:
    """What a pattern relative to ``root`` makes not count. Raises PatternProblem."""
    return FileIgnores(patterns(root, (pattern.removeprefix("!"),), stated_in), pattern.startswith("!"), codes)


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
