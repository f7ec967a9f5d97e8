"""Where results are kept: a file of JSON for each project and what was asked for, in a folder for each amplint.

Whatever cannot be read, or is no such file, holds nothing; what cannot be written is not kept. Files are replaced in
one step, so that of two runs at once the later one stays.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import amplint
from amplint.cache.digests import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "AMPLINT_CACHE_DIR"
"""Names the folder, in the environment."""
UNUSED_DAYS = 30
"""Days after which the results of another amplint go."""
_TAG = "CACHEDIR.TAG"
_SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55\n# What amplint found when it last checked files.\n"
"""Tells backups to leave the folder out (https://bford.info/cachedir/)."""


def default_folder() -> Path:
    """The folder that the environment names, else the user's own for caches."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("amplint", appauthor=False))


class Store:
    """The results of one amplint, below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / _version()

    def read(self, key: str) -> dict[str, Any]:
        """What is kept under a key."""
        try:
            kept = json.loads((self._own / f"{key}.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def write(self, key: str, kept: dict[str, Any]) -> None:
        import tempfile

        text = json.dumps(kept, separators=(",", ":")).encode()
        with suppress(OSError):
            if not self._own.is_dir():
                self._begin()
            handle, name = tempfile.mkstemp(dir=self._own, prefix="unfinished-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(text)
                os.replace(name, self._own / f"{key}.json")
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise

    def _begin(self) -> None:
        self._own.mkdir(parents=True)
        if not (self._folder / _TAG).exists():
            (self._folder / _TAG).write_text(_SIGNATURE, encoding="utf-8")
        oldest = time.time() - UNUSED_DAYS * 24 * 3600
        import shutil

        for other in _versions(self._folder):
            if other != self._own and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)


def clean(folder: Path) -> int:
    """Remove all results below a folder and say how many files held them; nothing else that lies there goes.

    Raises OSError.
    """
    import shutil

    count = 0
    for own in _versions(folder) if folder.is_dir() else ():
        count += sum(1 for _ in own.glob("*.json"))
        shutil.rmtree(own)
    if count and not any(path.name != _TAG for path in folder.iterdir()):
        shutil.rmtree(folder)
    return count


_PREFIX = "results-"


def _versions(folder: Path) -> list[Path]:
    return [path for path in folder.glob(f"{_PREFIX}*") if path.is_dir() and not path.is_symlink()]


@cache
def _version() -> str:
    """A name for this amplint, whose files may be edited between two releases, and for what parses with it."""
    from amplint.plugins import BUILT_IN

    said = [amplint.__version__, sys.version]
    for top in (*amplint.__path__, *_folders(BUILT_IN)):
        said += _files(top, below=True)
    for top in _folders("libcst"):
        said += _files(top, below=False)
    return _PREFIX + digest("\n".join(said).encode())


def _folders(package: str) -> list[str]:
    from importlib.util import find_spec

    spec = find_spec(package)
    return list(spec.submodule_search_locations or []) if spec is not None else []


def _files(folder: str, *, below: bool) -> Iterator[str]:
    """The files in a folder, and in those ``below``, each with its size and time of change."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if not entry.is_dir():
            stat = entry.stat()
            yield f"{entry.name} {stat.st_size} {stat.st_mtime_ns}"
        elif below and entry.name != "__pycache__":
            yield from _files(entry.path, below=True)
