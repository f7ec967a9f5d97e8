"""The releases: which ones, and where their Python files are had from. Nothing of theirs is installed or run."""

from __future__ import annotations

import csv
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheels import unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LIST = Path(__file__).resolve().parent / "releases.txt"
"""One ``name==version`` a line. Only releases with a wheel: for a source archive pip runs the package's own code."""


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A package of the index and its version."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package}-{self.version}"

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


def listed(path: Path = LIST) -> list[Release]:
    """The releases of the list."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [Release(*line.split("==")) for line in lines if line and not line.startswith("#")]


class Shelf:
    """Unpacked releases: below ``sources``, else in ``cache``, else downloaded as a wheel into it.

    A folder of ``sources`` holds ``NAME-VERSION`` folders, or is a site-packages folder with ``NAME-VERSION.dist-info``
    in it; of the latter the files that the record lists are copied to the cache, so that a release is read alone.
    """

    def __init__(self, cache: Path, sources: Sequence[Path] = ()) -> None:
        self._cache = cache
        self._folders = {found: entry for folder in sources for entry in folder.iterdir() if (found := _named(entry))}

    def folder(self, release: Release) -> Path:
        """The folder whose ``*.py`` files are those of the release. Raises DownloadError and OSError."""
        entry = self._folders.get((_normal(release.package), release.version))
        if entry is not None and entry.suffix != ".dist-info":
            return entry
        kept = self._cache / str(release)
        if not kept.is_dir():
            if entry is None:
                self._keep(kept, lambda unfinished: unpacked(release.requirement, unfinished))
            else:
                self._keep(kept, lambda unfinished: _copy(entry, unfinished / "files"))
        return kept

    def _keep(self, kept: Path, make: Callable[[Path], Path]) -> None:
        """Make a folder somewhere below the one given, and move it to ``kept`` once it is whole."""
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="unfinished-", dir=self._cache) as unfinished:
            make(Path(unfinished)).rename(kept)


def _named(entry: Path) -> tuple[str, str] | None:
    """The normalised name and the version that a folder's name says, if it says one."""
    name, _, version = entry.name.removesuffix(".dist-info").rpartition("-")
    return (_normal(name), version) if name and version[:1].isdigit() and entry.is_dir() else None


def _normal(name: str) -> str:
    """A package's name as the index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _copy(dist_info: Path, into: Path) -> Path:
    for name in _recorded(dist_info):
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(dist_info.parent / name, target)
    return into


def _recorded(dist_info: Path) -> Iterable[str]:
    """The Python files of an installed release, relative to its site-packages folder."""
    with (dist_info / "RECORD").open(encoding="utf-8", newline="") as record:
        names = [row[0] for row in csv.reader(record) if row]
    return [name for name in names if name.endswith(".py") and ".." not in Path(name).parts]
