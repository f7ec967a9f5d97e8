"""Which files of a project mention a name: searched as text before anything is parsed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.compiling import kept, ordinary
from amplint.infer.names.folders import LIBRARY_FOLDERS
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MAX_SEARCHED_BYTES = 64_000_000
"""Source of one project that is searched."""


INDEXED_AFTER = 50
"""Words that are looked for in all files of a project before it is noted which of them have which words."""


class TooLargeError(Exception):
    """A project has more source than is searched."""


_WORD = re.compile(rb"\w+")
_IMPORTS = re.compile(rb"\bimport\b(?:\s*\((?:#[^\n]*|[^)#])*|(?:\\\r?\n|[^\n(])*)")
"""What stands behind ``import``, on as many lines as it takes."""


@lru_cache(maxsize=1024)
def mentioning(folder: Path, whole: bool, age: int, name: bytes) -> tuple[Path, ...] | None:
    """The Python files below a folder, or in it alone, that may import a name; None where they are too large."""
    files = _files(folder, whole, age)
    if files is None:
        return None
    asked_of = re.compile(rb"\.%b\b(?<!self\.%b)" % ((re.escape(name),) * 2))
    return tuple(
        path
        for path, data, imports in files.having(name, starred=True)
        if name in data and (b"*" in imports or has_word(imports, name) or asked_of.search(data))
    )


@lru_cache(maxsize=1024)
def spelling(folder: Path, whole: bool, age: int, word: bytes) -> tuple[Path, ...] | None:
    """The same of those that have a word anywhere, or an attribute where the word begins with a dot."""
    files = _files(folder, whole, age)
    if files is None:
        return None
    return tuple(path for path, data, _ in files.having(word.removeprefix(b".")) if has_word(data, word))


@lru_cache(maxsize=256)
def naming_module(folder: Path, whole: bool, age: int, module: bytes) -> tuple[Path, ...] | None:
    """The same of those in which an import, or a text of one word, has the name of a module."""
    files = _files(folder, whole, age)
    if files is None:
        return None
    name = re.escape(module)
    named = re.compile(rb"\bfrom\b[^\n]*\b%b[\s\\]+import\b|[\"'][^\s\"']*\b%b\b[^\s\"']*[\"']" % (name, name))
    return tuple(
        path
        for path, data, imports in files.having(module)
        if has_word(imports, module) or (module in data and named.search(data))
    )


def has_word(data: bytes, word: bytes) -> bool:
    """Whether a word stands anywhere by itself; one that begins with a dot behind anything."""
    at = data.find(word)
    while at >= 0:
        end = at + len(word)
        if not _in_words(data[end : end + 1]) and (word.startswith(b".") or not _in_words(data[max(at - 1, 0) : at])):
            return True
        at = data.find(word, at + 1)
    return False


def _in_words(character: bytes) -> bool:
    return character.isalnum() or character == b"_"


def matching(folder: Path, whole: bool, age: int, pattern: re.Pattern[bytes]) -> tuple[Path, ...] | None:
    """The same of those in which a pattern is found."""
    files = _files(folder, whole, age)
    return tuple(path for path, data, _ in files.all if pattern.search(data)) if files is not None else None


def held(folder: Path, age: int) -> dict[Path, bytes] | None:
    """What all of those below a folder hold; None where they are too large."""
    files = _files(folder, True, age)
    return {path: data for path, data, _ in files.all} if files is not None else None


def parsed(path: Path) -> Source | None:
    """A file with its tree; None where it cannot be read or parsed, or is empty."""
    try:
        source = Source(path, contents.read(path))
        return source if source.tree.body else None
    except (OSError, SourceError):
        return None


def read_all(paths: Iterable[Path]) -> Iterator[tuple[Path, bytes]]:
    """What files hold, but for those that cannot be read. Raises TooLargeError."""
    size = 0
    for path in paths:
        try:
            data = contents.read(path)
        except OSError:
            continue
        size += len(data)
        if size > MAX_SEARCHED_BYTES:
            raise TooLargeError
        yield path, data


@ordinary
class _Files:
    """The files of a project with their source, and what they import."""

    def __init__(self, files: Iterable[tuple[Path, bytes, bytes]]) -> None:
        self.all = tuple(files)
        self._asked = 0

    def having(self, word: bytes, *, starred: bool = False) -> Sequence[tuple[Path, bytes, bytes]]:
        """The files that have a word, maybe among others; with those that import all names of another, if asked for."""
        self._asked += 1
        if self._asked <= INDEXED_AFTER or not _WORD.fullmatch(word):
            return self.all
        numbers = self._index.get(word, [])
        return [self.all[n] for n in (sorted({*numbers, *self._starred}) if starred else numbers)]

    @kept
    def _index(self) -> dict[bytes, list[int]]:
        """By word, the files that have it."""
        found: dict[bytes, list[int]] = {}
        for number, (_, data, _) in enumerate(self.all):
            for word in set(_WORD.findall(data)):
                found.setdefault(word, []).append(number)
        return found

    @kept
    def _starred(self) -> list[int]:
        return [number for number, (_, _, imports) in enumerate(self.all) if b"*" in imports]


@lru_cache(maxsize=1)
def _files(folder: Path, whole: bool, age: int) -> _Files | None:
    """The files below a folder, or in it alone; None where they are too large."""
    if folder.name in LIBRARY_FOLDERS:
        return None
    paths = sorted(folder.rglob("*.py") if whole else folder.glob("*.py"))
    try:
        return _Files((path, data, b"\n".join(_IMPORTS.findall(data))) for path, data in read_all(paths))
    except TooLargeError:
        return None
