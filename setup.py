"""Builds amplint: as pure Python, or with its inference compiled by mypyc where ``AMPLINT_COMPILED=1`` says so.

    AMPLINT_COMPILED=1 python -m build --wheel --no-isolation

The latter needs a C compiler, mypy 2.4 and setuptools in the environment. ``MYPYC_OPT_LEVEL`` is what the C compiler is
told, 2 by default. The modules are compiled from a copy under ``build``, and stay as Python files beside it.
"""

from __future__ import annotations

import ast
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import setup

ROOT = Path(__file__).resolve().parent
COPY = ROOT / "build" / "to-compile"
COMPILED = ("infer/**/*.py", "claims/*.py", "project/*.py", "verify/witness.py")
"""What is compiled of amplint: where its time goes, and what inherits from classes there."""


def extensions() -> list[Any]:
    """The extension modules, their C code written."""
    from mypyc.build import mypycify

    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT / "amplint", COPY / "amplint", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyd"))
    found = {path for pattern in COMPILED for path in (COPY / "amplint").glob(pattern) if path.name != "__init__.py"}
    trees = {path: ast.parse(path.read_bytes()) for path in sorted(found)}
    inherited = {ast.unparse(base) for tree in trees.values() for cls in _classes(tree) for base in cls.bases}
    modules = [path for path, tree in trees.items() if not _differs(tree, inherited)]
    for path in modules:
        _quote_annotations(path, trees[path])
    return mypycify(
        ["--config-file=", "--ignore-missing-imports", *map(str, modules)],
        opt_level=os.environ.get("MYPYC_OPT_LEVEL", "2"),
        debug_level="0",
        multi_file=True,
        group_name="amplint",
    )


def _differs(tree: ast.Module, inherited: set[str]) -> bool:
    """Whether what mypyc makes of a module would do something else.

    It takes what type checkers see for what runs. A data class with slots is another class than the one that was
    decorated, which mypyc has others inherit from: one that is inherited from stays in Python.
    """
    told_apart = any(isinstance(node, ast.If) and node.orelse and _for_type_checkers(node) for node in tree.body)
    return told_apart or any(_is_slotted(cls) and cls.name in inherited for cls in _classes(tree))


def _for_type_checkers(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _is_slotted(cls: ast.ClassDef) -> bool:
    calls = (decorator for decorator in cls.decorator_list if isinstance(decorator, ast.Call))
    return any(keyword.arg == "slots" for call in calls for keyword in call.keywords)


def _quote_annotations(path: Path, tree: ast.Module) -> None:
    """Write what a module's classes annotate as strings.

    mypyc evaluates it, whatever ``from __future__ import annotations`` says, and much of it is imported for type
    checkers alone.
    """
    lines = path.read_bytes().splitlines(keepends=True)
    annotations = [
        (statement.annotation, statement.annotation.end_lineno or statement.lineno)
        for cls in _classes(tree)
        for statement in cls.body
        if isinstance(statement, ast.AnnAssign) and not isinstance(statement.annotation, ast.Constant)
    ]
    for annotation, last in sorted(annotations, key=lambda found: -found[1]):
        before = lines[annotation.lineno - 1][: annotation.col_offset]
        after = lines[last - 1][annotation.end_col_offset :]
        lines[annotation.lineno - 1 : last] = [before + repr(ast.unparse(annotation)).encode() + after]
    path.write_bytes(b"".join(lines))


BUILDS = os.environ.get("AMPLINT_COMPILED") == "1" and "egg_info" not in sys.argv
"""Whether anything is to be compiled, and not only asked for, as front ends do first."""

setup(ext_modules=extensions() if BUILDS else [])
