"""Files that cannot be imported: what they, or their packages, import of their own distribution does not exist.

Python runs the ``__init__`` of every package around a file first, and all that these import. Only what stands at the
top level counts, of a distribution that was built, as its metadata shows: a checkout may lack submodules and what a
build generates. Compiled and generated modules are told by files or by settings that mention them.

A package fails as well where what it imports raises itself (:mod:`amplint.project.raising`), or asks for a file beside
it as if that stood at the top level: as a script it finds that file, as a part of its package it does not. Code that
was copied into a package may still ask for itself by the name that it had outside.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amplint import contents
from amplint.infer.syntax.bodies import nodes_below
from amplint.project.files import has_word, parsed
from amplint.project.layout import METADATA, SETTINGS
from amplint.project.raising import raises_when_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amplint.data.newer import Release
    from amplint.source import Source

_DYNAMIC = (b"__getattr__", b"globals(", b"vars(", b"setattr(", b"exec(", b"sys.modules")
_STAR = re.compile(rb"import[ \t]*\*")
_EXTENDING = re.compile(rb"sys\.path\b|\baddsitedir\b|\b__path__\b")
_GENERATED = re.compile(r"_pb2(_grpc)?$")


MAX_IMPORTED = 120
"""Files that are followed from one that is imported."""


def cannot_be_imported(tree: ast.Module, root: Path, package: str, torch: Release) -> bool:
    """Whether importing a file raises with a release of torch; ``root`` is the folder of its distribution, ``package``
    what holds the file."""
    if not package or not _is_complete(root):
        return False
    age = contents.age()
    if _fails(tree, root, package) or _package_fails(root, package, torch, age) or _takes_moved(tree, root, package):
        return True
    return any(file.fails for file in _imported(_own_modules(tree, package), root, package, torch, age))


@lru_cache(maxsize=256)
def _is_complete(root: Path) -> bool:
    return any(next(folder.glob(name), None) for folder in (root, root.parent) for name in METADATA)


@lru_cache(maxsize=1024)
def _package_fails(root: Path, package: str, torch: Release, age: int) -> bool:
    """Whether the ``__init__`` of a package or of one around it fails, or a file that is imported with it."""
    outer = package.rpartition(".")[0]
    if outer and _package_fails(root, outer, torch, age):
        return True
    path = root.joinpath(*package.split("."), "__init__.py")
    if not path.is_file():
        return False
    first = _read(path, root, torch, age)
    files = [first, *_imported(first.imports, root, package, torch, age)]
    if any(file.fails for file in files):
        return True
    return any(file.takes_neighbour for file in files) and not _extends_path(root, package)


class _File(NamedTuple):
    """What a file does where it is imported, by what stands in it."""

    imports: tuple[str, ...] = ()
    """What it imports at its top level, by absolute names."""
    fails: bool = False
    takes_neighbour: bool = False


@lru_cache(maxsize=4096)
def _read(path: Path, root: Path, torch: Release, age: int) -> _File:
    """A file, read and parsed once for all that is asked of it."""
    module = parsed(path)
    if module is None:
        return _File()
    package = package_of(path, root)
    fails = _fails(module.tree, root, package) or _takes_moved(module.tree, root, package)
    fails = fails or raises_when_run(module, torch)
    return _File(tuple(_own_modules(module.tree, package)), fails, _takes_neighbour(module, root))


def _imported(names: Iterable[str], root: Path, package: str, torch: Release, age: int) -> Iterator[_File]:
    """The files of a distribution that are run where these modules are imported, the nearest first: with the packages
    around them, and what all of these import at their top levels. Other distributions may lie in the same folder."""
    seen: set[Path] = set()
    pending, own = [*names], package.partition(".")[0]
    while pending and len(seen) < MAX_IMPORTED:
        parts = pending.pop(0).split(".")
        for end in range(1, len(parts) + 1) if parts[0] == own else ():
            path = module_file(root, ".".join(parts[:end]))
            if path is not None and path not in seen:
                seen.add(path)
                file = _read(path, root, torch, age)
                pending += file.imports
                yield file


def _fails(tree: ast.Module, root: Path, package: str) -> bool:
    """Whether an import at the top level of a file leads nowhere."""
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            name = named_in(statement, package)
            nowhere = bool(name) and _is_own(name, root, package) and _leads_nowhere(statement, name, root)
        elif isinstance(statement, ast.Import):
            nowhere = any(_is_own(a.name, root, package) and _is_missing(a.name, root) for a in statement.names)
        else:
            continue
        if nowhere:
            return True
    return False


def _absolute(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, list[str]]]:
    """The imports at the top level that do not go by the place of the file, each with the modules that it names."""
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            yield statement, [statement.module]
        elif isinstance(statement, ast.Import):
            yield statement, [alias.name for alias in statement.names]


def _takes_neighbour(source: Source, root: Path) -> bool:
    """Whether a file of a package imports, as if it stood at the top level, what can only be the file or the package
    beside it: that binds or holds all that is asked of it, and no library that the distribution requires has its
    name."""
    folder = source.path.parent
    for statement, names in _absolute(source.tree):
        for name in names:
            beside = module_file(folder, name)
            if beside in (None, source.path) or _is_elsewhere(name.partition(".")[0], root):
                continue
            text, asked = contents.read(beside), _asked_of(source.tree, statement)
            if all(has_word(text, own.encode()) or module_file(folder, f"{name}.{own}") for own in asked):
                return True
    return False


def _takes_moved(tree: ast.Module, root: Path, package: str) -> bool:
    """Whether a file imports, by the name that a package around it had where it comes from, what lies in that now: that
    binds all that is asked of it, and nothing at the top level nor a library that is required has the name."""
    folders = [root.joinpath(*package.split(".")[:end]) for end in range(1, package.count(".") + 2)]
    for statement, names in _absolute(tree):
        for name in names:
            outer, _, inner = name.partition(".")
            if not inner or _is_elsewhere(outer, root):
                continue
            moved = next((path for folder in folders if (path := module_file(folder, inner)) is not None), None)
            if moved is None:
                continue
            text = contents.read(moved)
            if all(has_word(text, asked.encode()) for asked in _asked_of(tree, statement)):
                return not _extends_path(root, package)
    return False


def _asked_of(tree: ast.Module, statement: ast.Import | ast.ImportFrom) -> set[str]:
    """The names that a file takes from the modules that a statement imports."""
    if isinstance(statement, ast.ImportFrom):
        return {alias.name for alias in statement.names if alias.name != "*"}
    modules = {alias.asname or alias.name for alias in statement.names}
    attributes = (node for node in nodes_below(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in modules}


def _is_elsewhere(name: str, root: Path) -> bool:
    """Whether a module of that name is Python's, stands at the top level, or may be one of a library."""
    if name in sys.stdlib_module_names or any(
        entry.partition(".")[0] == name for entry in _entries(root, contents.age())
    ):
        return True
    return name.casefold().replace("_", "-") in _required(root) or _is_made(name, root)


@lru_cache(maxsize=64)
def _required(root: Path) -> frozenset[str]:
    """The names of the distributions that one requires, in small letters, with hyphens."""
    found: set[str] = set()
    for pattern in ("*.dist-info/METADATA", "*.egg-info/PKG-INFO", "*.egg-info/requires.txt", "PKG-INFO"):
        for path in (*root.glob(pattern), *root.parent.glob(pattern)):
            text = path.read_text(encoding="utf-8", errors="replace")
            words = re.findall(r"^(?:Requires-Dist: *)?([A-Za-z][\w.-]*)", text, re.MULTILINE)
            found.update(re.sub(r"[._]", "-", word.casefold()) for word in words)
    return frozenset(found)


@lru_cache(maxsize=64)
def _extends_path(root: Path, package: str) -> bool:
    """Whether a file of a package changes where Python looks for modules."""
    first = root / package.partition(".")[0]
    return any(_EXTENDING.search(contents.read(path)) for path in sorted(first.rglob("*.py")))


def named_in(statement: ast.ImportFrom, package: str) -> str:
    """The absolute name of the module that a statement imports from; nothing where it leads out of the packages."""
    parts = package.split(".")
    if statement.level > len(parts):
        return ""
    base = parts[: len(parts) - statement.level + 1] if statement.level else []
    return ".".join((*base, *((statement.module,) if statement.module else ())))


def _own_modules(tree: ast.Module, package: str) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and (name := named_in(statement, package)):
            yield name
            yield from (f"{name}.{alias.name}" for alias in statement.names)
        elif isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)


def _is_own(name: str, root: Path, package: str) -> bool:
    """Whether a name begins with the distribution's own package, or with another spelling of it that is not there."""
    first, own = name.partition(".")[0], package.partition(".")[0]
    return first == own or (first.casefold() == own.casefold() and first not in _entries(root, contents.age()))


@lru_cache(maxsize=1024)
def _entries(folder: Path, age: int) -> frozenset[str]:
    try:
        return frozenset(path.name for path in folder.iterdir())
    except OSError:
        return frozenset()


def _leads_nowhere(statement: ast.ImportFrom, name: str, root: Path) -> bool:
    if _is_missing(name, root):
        return True
    path = module_file(root, name)
    if path is None:
        return False
    texts = _texts(path, root, contents.age())
    if texts is None:
        return False
    names = [alias.name for alias in statement.names if alias.name != "*" and not alias.name.startswith("__")]
    unbound = [own for own in names if not any(has_word(text, own.encode()) for text in texts)]
    return any(path.name != "__init__.py" or _is_missing(f"{name}.{own}", root) for own in unbound)


@lru_cache(maxsize=128)
def _texts(path: Path, root: Path, age: int) -> tuple[bytes, ...] | None:
    """A module and those that it imports ``*`` from; None where names may come from elsewhere too."""
    seen = {path: contents.read(path)}
    pending = [path]
    while pending:
        module = pending.pop()
        text = seen[module]
        if any(mark in text for mark in _DYNAMIC) or len(seen) > MAX_IMPORTED:
            return None
        for name in _starred(module, root) if _STAR.search(text) else ():
            starred = module_file(root, name) if name else None
            if starred is None:
                return None
            if starred not in seen:
                seen[starred] = contents.read(starred)
                pending.append(starred)
    return tuple(seen.values())


def _starred(path: Path, root: Path) -> Iterator[str]:
    """The modules that a file imports ``*`` from; nothing in the place of those that no folder of the root holds."""
    module = parsed(path)
    if module is None:
        yield ""
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            yield named_in(node, package_of(path, root))


def _is_missing(name: str, root: Path) -> bool:
    """Whether nothing is there of that name, nor is made when the distribution is built."""
    folder = root
    for part in name.split("."):
        entries = _entries(folder, contents.age())
        if part not in entries:
            stem = _GENERATED.sub("", part)
            return not any(entry.partition(".")[0] in (part, stem) for entry in entries) and not _is_made(part, root)
        folder = folder / part
    return False


def _is_made(name: str, root: Path) -> bool:
    return any(has_word(text, name.encode()) for text in _settings(root))


@lru_cache(maxsize=64)
def _settings(root: Path) -> tuple[bytes, ...]:
    paths = [folder / name for folder in (root, root.parent) for name in SETTINGS]
    return tuple(path.read_bytes() for path in paths if path.is_file())


def module_file(root: Path, name: str) -> Path | None:
    """The file of a module, below the folder that holds its outermost package."""
    return _module_file(root, name, contents.age())


@lru_cache(maxsize=8192)
def _module_file(root: Path, name: str, age: int) -> Path | None:
    path = root.joinpath(*name.split("."))
    candidates = (path / "__init__.py", path.with_name(path.name + ".py"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def package_of(path: Path, root: Path) -> str:
    return ".".join(path.parent.relative_to(root).parts)
