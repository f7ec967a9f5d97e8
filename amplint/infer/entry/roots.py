"""What only the user of a project calls: it is entered with a scenario's inputs."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import TorchName
from amplint.infer.machine.evidence import passed_by_keyword
from amplint.infer.names.definitions import Class, Function
from amplint.infer.names.folders import LIBRARY_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from amplint.infer.names.namespace import Namespace

MAX_FILES_SEARCHED = 5_000
"""Files of a project that are searched for calls of its classes."""

_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\(")
_PASSED = re.compile(rb"= ?([A-Za-z_]\w*)[ \t]*[,)\n]")
_DEFINED = re.compile(rb"^[ \t]*(class|def) +(\w+)", re.MULTILINE)
_SAID = re.compile(
    rb'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|\'\'\'[^\'\\]*(?:(?:\\.|\'(?!\'\'))[^\'\\]*)*\'\'\''
    rb'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\'[^\'\\\n]*(?:\\.[^\'\\\n]*)*\'|#[^\n]*',
    re.DOTALL,
)
"""Strings and comments, which call nothing."""


def roots(namespace: Namespace, defined: Iterable[Class | Function]) -> Iterator[Class | Function]:
    """Of a module's classes those that neither its classes nor more than one other file of its project construct.

    In the module itself every mention counts but those as a base, in an annotation and in an ``isinstance``; in other
    files a call by that name. One other file that does makes a wrapper around a model, several make a building block;
    of a class that derives from ``torch.nn`` alone, and that no function of its own file makes, one does.
    What a function of a package makes is the user's, unless a class of the module or several other files call it.
    Functions are for other files of a package to call; those of a script are its own, and so is what they make.
    """
    folder, package = namespace.project.root_of(namespace.path)
    called = _called_in(folder / package.partition(".")[0] if package else folder, bool(package))

    def is_shared(name: str, by: int = 2) -> bool:
        return len(called.get(name.encode(), set()) - {namespace.path}) >= by

    mentioned = _used(namespace.tree, is_shared) if package else set(_mentioned(namespace.tree))
    made = {name for s in namespace.tree.body if isinstance(s, ast.FunctionDef) for name in _mentioned(s)}
    for value in defined:
        part = isinstance(value, Class) and _is_plain_module(value) and value.name not in made
        several = 1 if package and part else 2
        shared = is_shared(value.name, several)
        if value.name not in mentioned and not shared and (isinstance(value, Class) or not package):
            yield value


def _is_plain_module(cls: Class) -> bool:
    """Whether a class derives from those of ``torch.nn`` alone."""
    return all(isinstance(base, TorchName) and base.name.startswith("torch.nn.") for base in cls.bases)


def _used(tree: ast.Module, is_shared: Callable[[str], bool]) -> set[str]:
    """Names that classes mention other than their own, and those that functions and tables mention which they use.

    Functions that several other files call count as used, and so does what any function passes by keyword.
    """
    users: dict[str, set[str]] = {}
    used: set[str] = set()
    pending: list[str] = [*passed_by_keyword(tree)]
    for statement in tree.body:
        names = set(_mentioned(statement))
        if isinstance(statement, ast.ClassDef):
            pending.extend(names - {statement.name})
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            users.setdefault(statement.name, set()).update(names)
            if is_shared(statement.name):
                pending.append(statement.name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            for target in statement.targets if isinstance(statement, ast.Assign) else (statement.target,):
                if isinstance(target, ast.Name):
                    users.setdefault(target.id, set()).update(names)
        else:
            pending.extend(names)
    while pending:
        name = pending.pop()
        if name not in used:
            used.add(name)
            pending.extend(users.get(name, ()))
    return used


def _mentioned(tree: ast.AST) -> Iterator[str]:
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
    """Names that are called, and those of classes that are passed by keyword, with up to three files that do.

    A file that defines a name itself does not count.
    """
    found: dict[bytes, set[Path]] = {}
    if folder.name in LIBRARY_FOLDERS:
        return found
    files = sorted(folder.rglob("*.py") if is_package else folder.glob("*.py"))[:MAX_FILES_SEARCHED]
    passed: list[tuple[Path, set[bytes]]] = []
    classes: set[bytes] = set()
    for path in files:
        try:
            text = _SAID.sub(b"", path.read_bytes())
        except OSError:
            continue
        defined = _DEFINED.findall(text)
        classes.update(name for kind, name in defined if kind == b"class")
        own = {name for _, name in defined}
        passed.append((path, set(_PASSED.findall(text)) - own))
        for name in {*_CALLED.findall(text)} - own:
            _note(found, name, path)
    for path, names in passed:
        for name in names & classes:
            _note(found, name, path)
    return found


def _note(found: dict[bytes, set[Path]], name: bytes, path: Path) -> None:
    where = found.setdefault(name, set())
    if len(where) < 3:
        where.add(path)
