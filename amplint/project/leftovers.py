"""What a package defines and leaves: its other files take from the same file, and nothing in the project mentions this.

A file that no other takes from is the user's to take from, and so is one of which an ``__init__`` takes. A class whose
base is not torch's may be found by that base, and what is decorated may be registered by it.
"""

from __future__ import annotations

import ast
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from amplint import contents
from amplint.infer.names.namespace import LIBRARY_FOLDERS
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.references import references
from amplint.project.files import MAX_SEARCHED_BYTES, containing, parsed
from amplint.project.mentions import definitions, encloses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts
    from amplint.project.mentions import Definition

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""What the root of a project holds one of."""
_TEXTS = (".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".gin", ".md", ".rst", ".ipynb")
"""Files beside the package's own source that may name what it defines."""
MAX_TEXT_BYTES = 1_000_000
"""Of a larger one nothing is read: it holds data."""


def left_over(facts: FileFacts, row: int) -> bool:
    """Whether a line of a package's file stands in a definition that nothing in the project mentions, while other files
    of the package take what else the file defines."""
    folder, package = facts.root
    name = facts.path.stem
    target = next((d for d in definitions(facts.source.tree).values() if encloses(d, row)), None)
    if target is None or not package or name == "__init__" or target.decorator_list or not _plain(target, facts):
        return False
    return _unmentioned(facts.path, target, folder / package.partition(".")[0], facts.source.tree)


def _unmentioned(path: Path, target: Definition, package: Path, tree: ast.Module) -> bool:
    own = {id(node) for node in ast.walk(target)}
    if any(_names(node, target.name) for node in nodes_below(tree) if id(node) not in own):
        return False
    files = containing(package, True, contents.age(), target.name.encode())
    if files is None or any(_mentions(other, target.name) for other in files if other != path):
        return False
    return _is_shared(path, package, tree) and not _is_named_in_texts(package, target.name)


def _plain(target: Definition, facts: FileFacts) -> bool:
    """Whether a definition is a function, or a class all of whose bases are torch's."""
    if not isinstance(target, ast.ClassDef):
        return True
    torch = {id(reference.node) for reference in references(facts.source.tree)}
    return not target.keywords and all(id(base) in torch for base in target.bases)


def _names(node: ast.AST, name: str) -> bool:
    """Whether a node is a name or attribute, an import or the whole of a string that ends in it."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and re.split(r"[.:/]", node.value)[-1] == name
    return name in (getattr(node, "id", None), getattr(node, "attr", None)) or (
        isinstance(node, ast.alias) and node.name == name
    )


def _mentions(path: Path, name: str) -> bool:
    source = parsed(path)
    return source is None or any(_names(node, name) for node in ast.walk(source.tree))


def _is_shared(path: Path, package: Path, tree: ast.Module) -> bool:
    """Whether other files take what a file defines by its name, and none takes all of it or lets its users do so."""
    shared = False
    for other in containing(package, True, contents.age(), path.stem.encode()) or ():
        taking = parsed(other) if other != path else None
        for name in _taken(taking.tree, path.stem) if taking is not None else ():
            if name is None or other.name == "__init__.py":
                return False
            shared = shared or name in definitions(tree)
    return shared


def _taken(tree: ast.Module, module: str) -> Iterator[str | None]:
    """Names that a file takes from a module of some name, or its own name; None where it may take any."""
    nodes = nodes_below(tree)
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == module:
            yield from (None if alias.name == "*" else alias.name for alias in node.names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {alias.name: alias.asname or alias.name for alias in node.names}
            modules |= {own for name, own in names.items() if name.rpartition(".")[2] == module}
    yield from (None if "." in name else name for name in modules)
    asked_of = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)} if modules else {}
    yield from (asked_of.get(id(node)) for node in nodes if isinstance(node, ast.Name) and node.id in modules)


def _is_named_in_texts(package: Path, name: str) -> bool:
    """Whether a test, example, configuration or page of the project has the word; so where it has too many."""
    texts = _texts(package, contents.age())
    word = re.compile(rb"\b%b\b" % re.escape(name.encode()))
    return texts is None or any(word.search(text) for text in texts)


@lru_cache(maxsize=1)
def _texts(package: Path, age: int) -> tuple[bytes, ...] | None:
    """What the files of a project hold that are no source of the package; None where they are too many."""
    found: list[bytes] = []
    size = 0
    for folder, folders, names in os.walk(_root(package)):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in LIBRARY_FOLDERS]
        within = package == Path(folder) or package in Path(folder).parents
        for name in names:
            file = Path(folder, name)
            if file.suffix not in _TEXTS or (within and file.suffix == ".py"):
                continue
            try:
                if file.stat().st_size > MAX_TEXT_BYTES:
                    continue
                found.append(contents.read(file))
            except OSError:
                continue
            size += len(found[-1])
            if size > MAX_SEARCHED_BYTES:
                return None
    return tuple(found)


def _root(package: Path) -> Path:
    """The nearest folder above that is marked as a project; the package's own where there is none."""
    for folder in package.parents:
        if folder.name in LIBRARY_FOLDERS:
            break
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    return package
