"""How much of what a project defines is reached from what it runs or hands out, told from its text.

A program reaches most of what it defines; of a library whose users import its modules, next to nothing is reached. The
statements at the top of its files begin, with what they mention: those that import only in an ``__init__``. What is
decorated may be registered, and begins as well; each definition leads to all those whose name stands in it. Files of
tests, as a runner finds them by what they define, neither begin nor count.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amplint import contents
from amplint.project.files import held
from amplint.project.import_texts import without_imports

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FEWEST = 40
"""Definitions of a project; of one with fewer, what nothing mentions may be what it is there for."""
SHARE = 0.6
"""Of judged findings in what nothing reaches, 56% of 90 were right in projects that reach so much, 84% of 175 in
others."""

_TEXT = re.compile(rb"#[^\n]*|([\"']{3})(?:\\.|(?!\1)[^\\])*\1", re.DOTALL)
"""Comments and texts of several lines."""
_BLOCK = re.compile(rb"^(?:@|class\b|def\b|async\b)[^\n]*\n(?:(?:[ \t)\]}][^\n]*)?\n)*", re.MULTILINE)
"""A decorator, class or function at the top of a file, with what is indented behind it."""
_DEFINED = re.compile(rb"(?:class|(?:async +)?def) +(\w+)")
_TEST = re.compile(rb"test_|Test[A-Z]")
_WORD = re.compile(rb"[^\W\d]\w*")


class _Defined(NamedTuple):
    """A definition at the top of a file with the words in it."""

    name: bytes
    words: frozenset[bytes]


def is_a_test(name: bytes) -> bool:
    """Whether a runner of tests finds a definition by its name."""
    return _TEST.match(name) is not None


def reaches_most(folder: Path) -> bool:
    """Whether the files below a folder define enough, and most of that is reached; not so where they are too large."""
    return _reaches_most(folder, contents.age())


@lru_cache(maxsize=4)
def _reaches_most(folder: Path, age: int) -> bool:
    defined: list[_Defined] = []
    begins: set[bytes] = set()
    for path, data in (held(folder, age) or {}).items():
        found, words = _parts(data, path.stem == "__init__")
        if not any(is_a_test(one.name) for one in found):
            defined += found
            begins |= words
    return len(defined) >= FEWEST and _reached(defined, begins) >= SHARE * len(defined)


def _parts(data: bytes, exporting: bool) -> tuple[list[_Defined], set[bytes]]:
    """What a file defines, and the words with which it begins."""
    defined: list[_Defined] = []
    begins: set[bytes] = set()
    decorated = False
    text = _TEXT.sub(b"", data.replace(b"\r\n", b"\n")) + b"\n"
    for block in _BLOCK.findall(text):
        name = _DEFINED.match(block)
        if name is not None:
            defined.append(_Defined(name[1], frozenset(_WORD.findall(block))))
        if name is None or decorated:
            begins.update(_WORD.findall(block.partition(b"\n")[0] if name is not None else block))
        decorated = name is None
    rest = _BLOCK.sub(b"", text)
    begins.update(_WORD.findall(rest if exporting else without_imports(rest)))
    return defined, begins


def _reached(defined: list[_Defined], begins: Iterable[bytes]) -> int:
    """How many definitions are reached from words."""
    named: dict[bytes, list[_Defined]] = {}
    for one in defined:
        named.setdefault(one.name, []).append(one)
    pending, seen = [*begins], set(begins)
    reached = 0
    while pending:
        for one in named.pop(pending.pop(), ()):
            reached += 1
            further = one.words - seen
            seen |= further
            pending += further
    return reached
