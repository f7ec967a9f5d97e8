"""Files of a project to which no import leads from where it begins, in one whose other files are mostly led to.

It begins in files of no package, those that lie right in a topmost package, programs, and tests. What is imported is
told from the text: statements wherever they stand, dotted names in texts, any in those of an ``__init__``; all files
below a folder where its ``__init__`` finds modules itself, or a text names it with a dot behind.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.compiling import kept, ordinary
from amplint.project.files import held
from amplint.project.import_texts import FROM, PLAIN
from amplint.project.reached import SHARE, is_a_test

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    Parts = tuple[str, ...]

FEWEST = 40
"""Files of a project; in one with fewer each may be there to be imported by its user."""
_TEXT = re.compile(rb"[\"'](\.*)(\w+(?:\.\w+)*\.?)[\"'{]")
_FINDING = re.compile(rb"\b(?:pkgutil|listdir|scandir|glob|iterdir|import_module|__import__)\b")
_DEFINED = re.compile(rb"^(?:class|def) +(\w+)", re.MULTILINE)
_WORD = re.compile(rb"\w+")
_PROGRAM = b"__main__"


def is_stranded(folder: Path, path: Path) -> bool:
    """Whether no import leads to a file of the project in a folder, where they lead to most of many."""
    imports = _imports(folder, contents.age())
    return imports is not None and imports.strand(path)


@lru_cache(maxsize=2)
def _imports(folder: Path, age: int) -> _Imports | None:
    files = held(folder, age)
    return _Imports(folder, files) if files is not None and len(files) >= FEWEST else None


@ordinary
class _Imports:
    """The imports of the files below a folder, by what they hold. Of files it speaks as modules: a name a part."""

    def __init__(self, folder: Path, files: Mapping[Path, bytes]) -> None:
        self._paths = {path.relative_to(folder.parent).with_suffix("").parts: path for path in files}
        self._parts = {path: parts for parts, path in self._paths.items()}
        self._data = {parts: files[path] for parts, path in self._paths.items()}
        self._packages = {parts[:-1] for parts in self._paths if parts[-1] == "__init__"}
        self._led: dict[Parts, frozenset[Parts]] = {}

    def strand(self, path: Path) -> bool:
        """Whether imports lead to most files, but not to one: most often some file is soon found that does."""
        parts = self._parts.get(path)
        if parts is None or self._begins(parts) or self._is_soon_found(parts):
            return False
        return len(self._reached) >= SHARE * len(self._paths) and parts not in self._reached

    def _is_soon_found(self, parts: Parts) -> bool:
        """Whether imports lead to a file from where the project begins, each file of which spells the next."""
        pending, seen = [parts], {parts}
        while pending:
            one = pending.pop()
            word = one[-2 if one[-1] == "__init__" else -1].encode()
            others = (other for other, data in self._data.items() if other not in seen and word in data)
            for other in sorted(others, key=self._begins, reverse=True):
                if one in self._imported(other):
                    if self._begins(other):
                        return True
                    seen.add(other)
                    pending.append(other)
        return False

    def _imported(self, parts: Parts) -> frozenset[Parts]:
        if parts not in self._led:
            self._led[parts] = frozenset(self._led_to(parts))
        return self._led[parts]

    @kept
    def _reached(self) -> set[Parts]:
        """The files with which the project begins, and those that imports lead to from there."""
        pending = [*filter(self._begins, self._paths)]
        seen = set(pending)
        while pending:
            further = self._imported(pending.pop()) - seen
            seen |= further
            pending += further
        return seen

    def _begins(self, parts: Parts) -> bool:
        tops = [depth for depth in range(1, len(parts)) if parts[:depth] in self._packages]
        if not tops or tops[0] == len(parts) - 1:
            return True
        data = self._data[parts]
        return _PROGRAM in data or any(map(is_a_test, _DEFINED.findall(data)))

    def _led_to(self, parts: Parts) -> Iterator[Parts]:
        """What a file imports, and the ``__init__`` of each package around it."""
        own, data, exporting = parts[:-1], self._data[parts], parts[-1] == "__init__"
        yield from self._modules(own, ())
        if exporting and _FINDING.search(data):
            yield from self._below(own)
        for dots, module, names in FROM.findall(data):
            asked = _split(module)
            for start in self._starts(own, len(dots)):
                yield from self._modules(start, asked)
                for name in _WORD.findall(names):
                    yield from self._modules(start, (*asked, name.decode(errors="replace")))
        for several in PLAIN.findall(data):
            for words in (one.split() for one in several.split(b",")):
                for start in self._starts(own, 0):
                    yield from self._modules(start, _split(words[0]) if words else ())
        for dots, module in _TEXT.findall(data):
            if exporting or dots or b"." in module:
                asked = _split(module)
                for start in self._starts(own, len(dots)):
                    yield from self._modules(start, asked)
                    yield from self._below((*start, *asked)) if module.endswith(b".") else ()

    def _below(self, folder: Parts) -> Iterator[Parts]:
        """All files below a folder."""
        yield from (parts for parts in self._paths if parts[: len(folder)] == folder)

    def _starts(self, own: Parts, level: int) -> list[Parts]:
        """The folders in which what is imported is looked for: one where dots say which."""
        if level:
            return [own[: len(own) - level + 1]] if level <= len(own) + 1 else []
        return [own[:depth] for depth in range(len(own) + 1)]

    def _modules(self, start: Parts, asked: Parts) -> Iterator[Parts]:
        """The files that are run to import a module: each package on the way, and its own."""
        for depth in range(len(start) + len(asked) + 1):
            parts = (*start, *asked)[:depth]
            if parts in self._paths and depth > len(start):
                yield parts
            if parts in self._packages:
                yield (*parts, "__init__")


def _split(module: bytes) -> Parts:
    return tuple(part for part in module.decode(errors="replace").split(".") if part)
