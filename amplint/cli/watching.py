"""``check --watch``: a fresh report after each change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amplint.cli.main import INTERRUPTED, counted, message
from amplint.config import CONFIG_NAMES, Configurations, UsageError
from amplint.files import SKIPPED_FOLDERS, display_path
from amplint.infer.names.folders import root_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from watchfiles import Change

WATCH = "--watch"
SHOWN = 3
"""Changed files that are named before the rest is counted."""
_SUFFIXES = (".py", ".pyi", ".ipynb")
_SETTINGS = (*CONFIG_NAMES, ".gitignore", "setup.cfg", "environment.yml", "environment.yaml")
"""Names of files that decide, beside Python source, what is found."""
_STEP = 200
"""Milliseconds after which the watcher, which then stands, first answers."""


def watch(paths: Sequence[str], configurations: Configurations, *, quiet: bool) -> int:
    """Check, and again whenever a file changes that may matter, until an interrupt. Raises UsageError.

    Each check is a process of its own: it sees files as they are then, and a mistake in a configuration is told and
    does not end the watch.
    """
    try:
        from watchfiles import watch as changes
    except ImportError as error:
        raise UsageError(f'{WATCH} needs watchfiles: pip install "amplint[watch]"') from error
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"no such file or directory: {path}")
    watched = Watched(paths, configurations)
    begun = False
    try:
        for changed in changes(
            *watched.folders, watch_filter=watched.matters, rust_timeout=_STEP, yield_on_timeout=True
        ):
            if changed or not begun:
                _check(sorted({Path(path) for _, path in changed}), quiet=quiet)
                begun = True
    except KeyboardInterrupt:
        pass
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot watch {', '.join(map(display_path, watched.folders))}: {error}") from error
    return INTERRUPTED


class Watched:
    """What is looked at: the projects of some paths, since what is found rests on what is imported too, and the
    folders of their configurations."""

    def __init__(self, paths: Iterable[str], configurations: Configurations) -> None:
        given = [Path(os.path.abspath(path)) for path in paths]
        folders = [path if path.is_dir() else path.parent for path in given]
        configs = [configurations.of(folder) for folder in folders]
        roots = {root_of(folder)[0] for folder in folders} | {
            config.root for config in configs if config and config.root
        }
        self.folders = sorted(root for root in roots if roots.isdisjoint(root.parents))

    def matters(self, change: Change, path: str) -> bool:
        """Whether a file that changed can decide what is found."""
        file = Path(path)
        folder = next((folder for folder in self.folders if folder in file.parents), file.parent)
        between = file.parent.relative_to(folder).parts
        if any(part.startswith(".") or part in SKIPPED_FOLDERS for part in between):
            return False
        requires = file.name.startswith("requirements") and file.suffix == ".txt"
        return file.suffix in _SUFFIXES or file.name in _SETTINGS or requires


def _check(changed: Sequence[Path], *, quiet: bool) -> None:
    """One check, by the same command line but for the watching."""
    click.clear()
    if changed and not quiet:
        message(f"{_named(changed)} changed: checking again")
    process = subprocess.Popen([sys.executable, "-m", "amplint", *_arguments()], start_new_session=True)
    try:
        process.wait()
    finally:
        process.kill()
        process.wait()
    if not quiet:
        message("watching for changes; Ctrl-C ends it")


def _arguments() -> list[str]:
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    return [*(argument for argument in given[:end] if argument != WATCH), *given[end:]]


def _named(paths: Iterable[Path]) -> str:
    names = [display_path(path) for path in paths]
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {counted(more, 'more file')}" if more > 0 else "")
