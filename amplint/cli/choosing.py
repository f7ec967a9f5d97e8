"""The options of a command line that say which files are looked at, and which rules count in some of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from amplint.config import Config, FileIgnores, UsageError, file_ignores
from amplint.judging import split
from amplint.patterns import PatternProblem, Patterns, patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

_F = TypeVar("_F", bound=Callable[..., Any])

PER_FILE_IGNORES = "--per-file-ignores"


def choosing_options(command: _F) -> _F:
    """Give a command ``--exclude``, ``--extend-exclude``, ``--force-exclude`` and ``--per-file-ignores``."""
    text = "Files and folders to pass over{}: patterns as in .gitignore, with commas."
    for option in (
        click.option(
            "--force-exclude/--no-force-exclude", default=None, help="Pass over excluded files that are named, too."
        ),
        click.option(
            "--extend-exclude", multiple=True, metavar="PATTERNS", help=text.format(" besides the excluded ones")
        ),
        click.option(
            "--exclude", multiple=True, metavar="PATTERNS", help=text.format(" instead of the configuration's")
        ),
        click.option(
            PER_FILE_IGNORES,
            multiple=True,
            metavar="PATTERN:RULES",
            help="Rules to leave out in some files, such as tests/:AMP3; may be repeated.",
        ),
    ):
        command = option(command)
    return command


class Choosing(Protocol):
    """The command line of a run with these options."""

    @property
    def per_file_ignores(self) -> tuple[str, ...]: ...
    @property
    def exclude(self) -> tuple[str, ...]: ...
    @property
    def extend_exclude(self) -> tuple[str, ...]: ...
    @property
    def force_exclude(self) -> bool | None: ...
    @property
    def baseline(self) -> str | None: ...
    @property
    def unsafe_fixes(self) -> bool | None: ...


def changing(given: Choosing) -> Callable[[Config], Config]:
    """What a command line makes of each configuration; its patterns are relative to the current folder.

    Raises UsageError for what is no pattern.
    """
    ignores = split_ignores(given.per_file_ignores)
    instead, besides = _stated("--exclude", given.exclude), _stated("--extend-exclude", given.extend_exclude)

    def changed(config: Config) -> Config:
        return replace(
            config,
            per_file_ignores=ignores or config.per_file_ignores,
            exclude=instead or config.exclude,
            extend_exclude=(*config.extend_exclude, *besides),
            force_exclude=config.force_exclude if given.force_exclude is None else given.force_exclude,
            baseline=config.baseline if given.baseline is None else Path(os.path.abspath(given.baseline)),
            unsafe_fixes=config.unsafe_fixes if given.unsafe_fixes is None else given.unsafe_fixes,
        )

    return changed


def _stated(option: str, values: Sequence[str]) -> tuple[Patterns, ...]:
    try:
        return (patterns(Path.cwd(), split(values), option),) if values else ()
    except PatternProblem as error:
        raise UsageError(f"{option}: {error}") from error


def split_ignores(values: Sequence[str]) -> dict[str, FileIgnores]:
    """What ``PATTERN:RULES`` says, by pattern relative to the current folder. Raises UsageError."""
    codes: dict[str, list[str]] = {}
    for value in values:
        last: list[str] | None = None
        for part in split([value]):
            pattern, colon, code = part.rpartition(":")
            if colon and pattern and code:
                last = codes.setdefault(pattern, [])
            elif colon or last is None:
                raise UsageError(f"{PER_FILE_IGNORES} '{value}' is not PATTERN:RULES, such as tests/:AMP3")
            last.append(code)
    try:
        return {
            pattern: file_ignores(Path.cwd(), pattern, tuple(chosen), PER_FILE_IGNORES)
            for pattern, chosen in codes.items()
        }
    except PatternProblem as error:
        raise UsageError(f"{PER_FILE_IGNORES}: {error}") from error
