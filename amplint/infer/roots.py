"""What only the user of a project calls: it is entered with a scenario's inputs."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.infer.namespace import LIBRARY_FOLDERS
from amplint.infer.values import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amplint.infer.namespace import Namespace

MAX_FILES_SEARCHED = 5_000
"""Files of a project that are searched for calls of its classes."""

_CALLED = re.compile(rb"(?<!class )(?<!\w)([A-Z]\w*)\(")
_DOCTEST = re.compile(rb"^.*>>>.*$", re.MULTILINE)


def roots(namespace: Namespace, defined: Iterable[Class | Function]) -> Iterator[Class | Function]:
    """Of a module's classes those that neither it nor more than one other file of its project constructs.

    In the module itself every mention counts but those as a base, in an annotation and in an ``isinstance``; in other
    files a call by that name. One other file that does makes a wrapper around a model, several make a building block.
    Functions are for other files of a package to call; those of a script are its own.
    """
    mentioned = set(_mentioned(namespace.tree))
    folder, package = namespace.project.root_of(namespace.path)
    called = _called_in(folder / package.partition(".")[0] if package else folder, bool(package))
    for value in defined:
        elsewhere = called.get(value.name.encode(), set()) - {namespace.path}
        if value.name not in mentioned and len(elsewhere) < 2 and (isinstance(value, Class) or not package):
            yield value


def _mentioned(tree: ast.Module) -> Iterator[str]:
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            yield node.id
        for name, value in ast.iter_fields(node):
            if name in ("bases", "annotation", "returns", "decorator_list") or _is_type_test(node):
                continue
            stack.extend(n for n in (value if isinstance(value, list) else (value,)) if isinstance(n, ast.AST))


def _is_type_test(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "super")


@lru_cache(maxsize=4)
def _called_in(folder: Path, is_package: bool) -> dict[bytes, set[Path]]:
    """Names that start with a capital and are called, with up to three of the files that do."""
    found: dict[bytes, set[Path]] = {}
    if folder.name in LIBRARY_FOLDERS:
        return found
    files = sorted(folder.rglob("*.py") if is_package else folder.glob("*.py"))[:MAX_FILES_SEARCHED]
    for path in files:
        try:
            data = path.read_bytes()
        except OSError:
            continue
        for name in set(_CALLED.findall(_DOCTEST.sub(b"", data))):
            where = found.setdefault(name, set())
            if len(where) < 3:
                where.add(path)
    return found
