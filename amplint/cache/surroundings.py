"""What a file's result may rest on beside itself: all of the project around it that amplint reads, as one digest.

Which files decide a result is found out by checking, and what is not there decides too: the name that nobody calls, the
module that cannot be imported. So nothing is left out. A project is the outermost folder that any question about a file
is put to: where its absolute imports start, what says that it is a project, and the package around it. Of a library
that is installed beside others, it is the package alone, with the metadata that lies beside it.
"""

from __future__ import annotations

import fnmatch
import os
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amplint.cache.digests import Digests, digest
from amplint.infer.names.folders import FOLDERS_BETWEEN, LIBRARY_FOLDERS, MARKS, is_unpacked
from amplint.line_length import line_length
from amplint.project.layout import MAX_TEXT_BYTES, METADATA, SETTINGS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_ENTRIES = 40_000
"""Files and folders of one project; where there are more, looking at all of them would cost too much."""
_READ_WHOLE = (".py", ".yaml", ".yml")
"""Files that are read however large they are."""
_IGNORED = ("__pycache__", ".git", ".hg", ".svn", ".mypy_cache", ".ruff_cache", ".pytest_cache")
_NAME = attrgetter("name")


class Around(NamedTuple):
    """Where a folder's files stand."""

    project: Path
    root: Path
    """Where absolute imports start."""
    inside: Path
    """The topmost package, of which hidden folders count too; the folder itself where it is in none."""


class Places:
    """Where folders stand, each looked for once."""

    def __init__(self) -> None:
        self._known: dict[Path, Around] = {}
        self._roots: dict[str, tuple[str, str]] = {}
        self._marks: dict[str, str] = {}
        self._paths: dict[str, Path] = {}

    def of(self, folder: Path) -> Around:
        """Where the files in an absolute folder stand."""
        if folder not in self._known:
            self._known[folder] = Around(*map(self._path, self._found(str(folder))))
        return self._known[folder]

    def marks(self, folder: str) -> str:
        """Which marks of a project lie in a folder, as digits, the last one for what an unpacked wheel has."""
        if folder not in self._marks:
            held = [os.path.exists(os.path.join(folder, mark)) for mark in MARKS]
            self._marks[folder] = "".join("1" if one else "0" for one in (*held, is_unpacked(self._path(folder))))
        return self._marks[folder]

    def _path(self, text: str) -> Path:
        return self._paths.setdefault(text, Path(text))

    def _found(self, folder: str) -> tuple[str, str, str]:
        root, package = self._root_of(folder)
        top = package.partition(".")[0]
        inside = os.path.join(root, top) if top else root if package else folder
        if os.path.basename(os.path.dirname(inside)) in LIBRARY_FOLDERS:
            return inside, root, inside
        starts = [root, *self._packages_around(folder), self._marked(inside)]
        return min(starts, key=lambda start: start.rstrip(os.sep).count(os.sep)), root, inside

    def _root_of(self, folder: str) -> tuple[str, str]:
        """What :func:`~amplint.infer.names.folders.root_of` says."""
        if folder not in self._roots:
            above, name = os.path.split(folder)
            if above != folder and os.path.isfile(os.path.join(folder, "__init__.py")):
                root, package = self._root_of(above)
                self._roots[folder] = root, f"{package}.{name}" if package else name
            else:
                self._roots[folder] = folder, ""
        return self._roots[folder]

    def _packages_around(self, folder: str) -> Iterator[str]:
        """Where the imports of the packages start that a folder without an ``__init__`` may belong to; an installed one
        itself, which does not rest on what is installed beside it."""
        for above in islice(_above(folder), FOLDERS_BETWEEN):
            root, package = self._root_of(above)
            if package:
                yield (
                    os.path.join(root, package.partition(".")[0]) if os.path.basename(root) in LIBRARY_FOLDERS else root
                )

    def _marked(self, folder: str) -> str:
        """The outermost folder above that is marked as a project, below what holds libraries; this one if none is."""
        found = folder
        for above in _above(folder):
            if os.path.basename(above) in LIBRARY_FOLDERS:
                break
            if "1" in self.marks(above):
                found = above
        return found


def _above(folder: str) -> Iterator[str]:
    """The folders above an absolute one, the nearest first."""
    above = os.path.dirname(folder)
    while above != folder:
        yield above
        folder, above = above, os.path.dirname(above)


class _Seen(NamedTuple):
    """What is below a project, hidden folders left out."""

    said: str
    entries: int
    passed: list[str]
    """Hidden folders that were not looked into, which count where they belong to a package."""
    linked: set[str]


class Surroundings:
    """The digests of projects, each looked through once."""

    def __init__(self, digests: Digests, places: Places) -> None:
        self._digests = digests
        self._places = places
        self._of_folders: dict[Path, str | None] = {}
        self._seen: dict[Path, _Seen | None] = {}
        self._wholes: dict[tuple[Path, Path], str | None] = {}
        self._besides: dict[Path, str] = {}
        self._listed: dict[Path, list[str]] = {}

    def of(self, folder: Path) -> str | None:
        """A digest of what the results in a folder may rest on; None where that is too much to look at."""
        if folder not in self._of_folders:
            self._of_folders[folder] = self._found(folder)
        return self._of_folders[folder]

    def still(self, digests: Digests) -> bool:
        """Whether all is as it was when it was asked for, by digests that look at files again."""
        again = Surroundings(digests, Places())
        return all(again.of(folder) == found for folder, found in self._of_folders.items())

    def _found(self, folder: Path) -> str | None:
        where = self._places.of(folder)
        key = (where.project, where.inside)
        if key not in self._wholes:
            self._wholes[key] = self._whole(where)
        whole = self._wholes[key]
        if whole is None:
            return None
        if where.root not in self._besides:
            self._besides[where.root] = _said(self._beside(where.root))
        return _said([whole, self._besides[where.root], str(line_length(folder / "_"))])

    def _whole(self, where: Around) -> str | None:
        """The names below a project and what the files hold that amplint may read, and which folders above are marked.

        Projects are looked through once, whatever package is asked about, and then the hidden folders inside of that.
        """
        if where.project not in self._seen:
            self._seen[where.project] = self._below([str(where.project)], {os.path.realpath(where.project)})
        seen = self._seen[where.project]
        if seen is None:
            return None
        inside = str(where.inside)
        hidden = [path for path in seen.passed if path.startswith(inside + os.sep)]
        more = self._below(hidden, {*seen.linked}, seen.entries, hidden=True)
        above = map(self._places.marks, _above(inside))
        return _said([seen.said, more.said, *above]) if more is not None else None

    def _below(self, pending: list[str], linked: set[str], count: int = 0, *, hidden: bool = False) -> _Seen | None:
        """What is below some folders, in ``hidden`` ones too; None where that is too much. Links count once."""
        found: list[str] = []
        passed: list[str] = []
        while pending:
            parent = pending.pop()
            try:
                with os.scandir(parent) as scan:
                    entries = sorted(scan, key=_NAME)
            except OSError:
                entries = []
            count += len(entries)
            if count > MAX_ENTRIES:
                return None
            for entry in entries:
                name, path = entry.name, entry.path
                found.append(path)
                if _is_folder(entry):
                    if name in _IGNORED or (entry.is_symlink() and not _leads_elsewhere(path, linked)):
                        continue
                    looked_into = hidden or not (name.startswith(".") or name in LIBRARY_FOLDERS)
                    (pending if looked_into else passed).append(path)
                elif name.endswith(TEXTS):
                    found.append(self._held(entry))
        return _Seen(_said(found), count, passed, linked)

    def _held(self, entry: os.DirEntry[str]) -> str:
        try:
            stat = entry.stat()
        except OSError:
            return ""
        if stat.st_size > MAX_TEXT_BYTES and not entry.name.endswith(_READ_WHOLE):
            return str(stat.st_size)
        return self._digests.of(entry.path, stat)

    def _beside(self, root: Path) -> Iterator[str]:
        """The names that stand where imports start, and what says of which distribution they are."""
        yield from self._names(root)
        for folder in (root, root.parent):
            for name in SETTINGS:
                yield self._digests.of(os.path.join(folder, name))
            for pattern in METADATA:
                for name in fnmatch.filter(self._names(folder), pattern):
                    found = folder / name
                    yield str(found)
                    for held in (found, *sorted(found.glob("*"))) if found.is_dir() else (found,):
                        yield self._digests.of(str(held)) if held.is_file() else ""

    def _names(self, folder: Path) -> list[str]:
        if folder not in self._listed:
            try:
                self._listed[folder] = sorted(os.listdir(folder))
            except OSError:
                self._listed[folder] = sorted(METADATA)  # what is known by name may be there nevertheless
        return self._listed[folder]


def _said(parts: Iterable[str]) -> str:
    return digest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _leads_elsewhere(link: str, seen: set[str]) -> bool:
    """Whether a link leads to what was not looked through yet; ``seen`` are such folders, the project's own first."""
    real = os.path.realpath(link)
    if any(real == other or real.startswith(other + os.sep) for other in seen):
        return False
    seen.add(real)
    return True


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
