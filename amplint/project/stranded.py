"""Files of a project to which no import leads from where it begins, in one whose other files are mostly led to.

It begins in files of no package, those that lie right in a topmost package, programs, and tests. What is imported is
told from the text: statements wherever they stand, dotted names in texts; the files of a folder all together where its
``__init__`` finds modules itself, or a text names the folder with a dot behind it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.compiling import ordinary
from amplint.project.files import matching
from amplint.project.reached import SHARE, is_a_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FEWEST = 40
"""Files of a project; in one with fewer each may be there to be imported by its user."""
_FROM = re.compile(rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]*import[ \t\\]*(\([^)]*\)|[^\n;]*)", re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*import[ \t]+([^\n;]+)", re.MULTILINE)
_TEXT = re.compile(rb"[\"'](\.*)(\w+(?:\.\w+)*\.?)[\"'{]")
_FINDING = re.compile(rb"\b(?:pkgutil|listdir|scandir|glob|iterdir|import_module|__import__)\b")
_DEFINED = re.compile(rb"^(?:class|def) +(\w+)", re.MULTILINE)
_WORD = re.compile(rb"\w+")
_ANY = re.compile(rb"")
_PROGRAM = b"__main__"


def is_stranded(folder: Path, path: Path) -> bool:
    """Whether no import leads to a file of the project in a folder, where they lead to most of many."""
    return path in _stranded(folder, contents.age())


@lru_cache(maxsize=2)
def _stranded(folder: Path, age: int) -> frozenset[Path]:
    paths = matching(folder, True, age, _ANY)
    if paths is None or len(paths) < FEWEST:
        return frozenset()
    reached = _Imports(folder, paths).reached()
    return frozenset(paths) - reached if len(reached) >= SHARE * len(paths) else frozenset()


@ordinary
class _Imports:
    """The imports of the files below a folder."""

    def __init__(self, folder: Path, paths: Iterable[Path]) -> None:
        self._known = {path.relative_to(folder.parent).with_suffix("").parts: path for path in paths}
        self._packages = {parts[:-1] for parts in self._known if parts[-1] == "__init__"}
        self._within: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for parts in self._known:
            self._within.setdefault(parts[:-1], []).append(parts)

    def reached(self) -> frozenset[Path]:
        """The files with which the project begins, and those that imports lead to from there."""
        pending = [parts for parts, path in self._known.items() if self._begins(parts, path)]
        seen = set(pending)
        while pending:
            for parts in self._led_to(pending.pop()):
                if parts not in seen:
                    seen.add(parts)
                    pending.append(parts)
        return frozenset(self._known[parts] for parts in seen)

    def _begins(self, parts: tuple[str, ...], path: Path) -> bool:
        tops = [depth for depth in range(1, len(parts)) if parts[:depth] in self._packages]
        if not tops or tops[0] == len(parts) - 1:
            return True
        data = contents.read(path)
        return _PROGRAM in data or any(map(is_a_test, _DEFINED.findall(data)))

    def _led_to(self, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """What a file imports, and the ``__init__`` of each package around it."""
        own, data = parts[:-1], contents.read(self._known[parts])
        yield from self._modules(own, ())
        if parts[-1] == "__init__" and _FINDING.search(data):
            yield from self._within[own]
        for dots, module, names in _FROM.findall(data):
            asked = _split(module)
            for start in self._starts(own, len(dots)):
                yield from self._modules(start, asked)
                for name in _WORD.findall(names):
                    yield from self._modules(start, (*asked, name.decode(errors="replace")))
        for several in _IMPORT.findall(data):
            for one in several.split(b","):
                asked = _split(one.split()[0] if one.split() else b"")
                for start in self._starts(own, 0):
                    yield from self._modules(start, asked)
        for dots, module in _TEXT.findall(data):
            if b"." in module or dots:
                asked = _split(module.rstrip(b"."))
                for start in self._starts(own, len(dots)):
                    yield from self._modules(start, asked)
                    yield from self._within.get((*start, *asked), ()) if module.endswith(b".") else ()

    def _starts(self, own: tuple[str, ...], level: int) -> list[tuple[str, ...]]:
        """The folders in which what is imported is looked for: one where dots say which."""
        if level:
            return [own[: len(own) - level + 1]] if level <= len(own) + 1 else []
        return [own[:depth] for depth in range(len(own) + 1)]

    def _modules(self, start: tuple[str, ...], asked: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The files that are run to import a module: each package on the way, and its own."""
        for depth in range(len(start) + len(asked) + 1):
            parts = (*start, *asked)[:depth]
            if parts in self._known and depth > len(start):
                yield parts
            if parts in self._packages:
                yield (*parts, "__init__")


def _split(module: bytes) -> tuple[str, ...]:
    return tuple(part for part in module.decode(errors="replace").split(".") if part)
