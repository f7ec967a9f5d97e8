"""What only tests run beside the tests themselves: the other files of a folder that mostly holds tests."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.infer.syntax.scripts import asks_for_low_precision, is_test
from amplint.project.files import parsed

if TYPE_CHECKING:
    import ast
    from pathlib import Path

MIN_TESTS = 3
"""Tests that make a folder one of tests: one or two may lie beside what they test."""
_RUNNER = re.compile(rb"^[ \t]*(?:import|from)[ \t]+(?:pytest|unittest)\b", re.MULTILINE)


def helps_tests(path: Path, tree: ast.Module) -> bool:
    """Whether a file lies among tests, and neither it nor a test that mentions it asks for low precision."""
    files, tests = _folder(path.parent, contents.age())
    tests = tuple(test for test in tests if test != path)
    if len(tests) < MIN_TESTS or 2 * len(tests) < files or asks_for_low_precision(tree):
        return False
    word = re.compile(rb"\b%b\b" % re.escape(path.stem.encode()))
    users = [user.tree for test in tests if word.search(_text(test)) and (user := parsed(test)) is not None]
    return not any(map(asks_for_low_precision, users))


def _text(path: Path) -> bytes:
    try:
        return contents.read(path)
    except OSError:
        return b""


@lru_cache(maxsize=64)
def _folder(folder: Path, age: int) -> tuple[int, tuple[Path, ...]]:
    """How many files a folder has, and which of them are tests."""
    files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    run = [path for path in files if _RUNNER.search(_text(path))]
    if 2 * len(run) < len(files):
        return len(files), ()
    return len(files), tuple(path for path in run if (test := parsed(path)) is not None and is_test(test.tree))
