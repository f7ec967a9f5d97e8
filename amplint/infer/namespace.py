"""Names of a module, evaluated when first asked for, across the files of one project.

Imports of the project are read from disk whether or not their files were named to the command, so what is found in a
file does not depend on which others are checked. torch itself is never read: its names are facts of the op table.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from amplint.infer.values import UNKNOWN, Class, External, ModuleValue, TorchName, Union, Value
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY_FOLDERS = ("site-packages", "dist-packages")
MAX_FILES_FOLLOWED = 100
"""Files that the imports of one file are followed into, directly or not; what lies in more stays unknown."""
MAX_PROJECT_BYTES = 3_000_000
"""Source of the project files kept parsed at a time."""

Binding = ast.stmt | ast.alias
Evaluate = Callable[["Namespace", str, Binding], Value]

_MOVED = {
    "torch.autocast": "torch.amp.autocast",
    "torch.amp.autocast_mode.autocast": "torch.amp.autocast",
    "torch.amp.autocast_mode.custom_fwd": "torch.amp.custom_fwd",
    "torch.amp.autocast_mode.custom_bwd": "torch.amp.custom_bwd",
    "torch.cuda.amp.autocast_mode.autocast": "torch.cuda.amp.autocast",
    "torch.cuda.amp.autocast_mode.custom_fwd": "torch.cuda.amp.custom_fwd",
    "torch.cuda.amp.autocast_mode.custom_bwd": "torch.cuda.amp.custom_bwd",
    "torch.autograd.function.Function": "torch.autograd.Function",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.functional.einsum": "torch.einsum",
    "torch.nn.attention.scaled_dot_product_attention": "torch.nn.functional.scaled_dot_product_attention",
}


def canonical(name: str) -> str:
    """One spelling for names that torch exports from several places."""
    if name in _MOVED:
        return _MOVED[name]
    if name.startswith("torch.nn.modules."):
        rest = name.removeprefix("torch.nn.modules.").split(".")
        if rest[-1][:1].isupper():
            return "torch.nn." + rest[-1]
    return name


class Namespace:
    """The names of one module of the project."""

    def __init__(self, source: Source, package: str, is_package: bool, project: Project) -> None:
        self.source = source
        self.path = source.path
        self.package = package
        self.is_package = is_package
        self.project = project
        self.tree = source.tree
        self.bindings: dict[str, list[Binding]] = {}
        self.values: dict[str, Value] = {}
        self._pending: set[str] = set()
        for name, binding in _module_bindings(self.tree.body):
            self.bindings.setdefault(name, []).append(binding)

    @property
    def defined(self) -> list[str]:
        """Names of the functions and classes that the module defines itself, in order."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return [name for name, bindings in self.bindings.items() if any(isinstance(b, kinds) for b in bindings)]

    def lookup(self, name: str, evaluate: Evaluate) -> Value | None:
        """The value of a module-level name; None where the module does not bind it."""
        if name in self.values:
            return self.values[name]
        bindings = self.bindings.get(name)
        if bindings is None:
            return None
        if name in self._pending:
            return UNKNOWN
        self._pending.add(name)
        try:
            options: list[Value] = []
            for binding in bindings:
                value = evaluate(self, name, binding)
                if all(value.key != other.key for other in options):
                    options.append(value)
            value = options[0] if len(options) == 1 else Union(tuple(options))
        finally:
            self._pending.discard(name)
        self.values[name] = value
        return value

    def forget_values(self) -> None:
        """Drop what was evaluated; classes and their methods refer to each other, so they are taken apart."""
        for value in self.values.values():
            if isinstance(value, Class):
                value.members.clear()
        self.values.clear()
        self._pending.clear()

    def imported(self, alias: ast.alias, statement: ast.Import | ast.ImportFrom, evaluate: Evaluate) -> Value:
        """What an import statement binds."""
        if isinstance(statement, ast.Import):
            if alias.asname is None:
                top = alias.name.split(".")[0]
                return self._absolute(top)
            return self._absolute(alias.name)
        if statement.level:
            parts = self.package.split(".") if self.package else []
            parts = parts[: len(parts) - (statement.level - 1)] if statement.level > 1 else parts
            base = ".".join([*parts, statement.module] if statement.module else parts)
        else:
            base = statement.module or ""
        if base == "torch" or base.startswith("torch."):
            return TorchName(canonical(f"{base}.{alias.name}"))
        namespace = self.project.find(base, self)
        if namespace is None:
            submodule = self.project.find(f"{base}.{alias.name}", self) if base else None
            return ModuleValue(submodule) if submodule else External(f"{base}.{alias.name}")
        value = namespace.lookup(alias.name, evaluate)
        if value is not None:
            return value
        submodule = self.project.find(f"{base}.{alias.name}", self)
        return ModuleValue(submodule) if submodule else UNKNOWN

    def star_import(self, name: str, evaluate: Evaluate) -> Value | None:
        """A name that a ``from … import *`` of the project provides."""
        for statement in self.tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*" and statement.level <= 1:
                base = statement.module or ""
                if statement.level:
                    base = f"{self.package}.{base}" if base and self.package else base or self.package
                namespace = self.project.find(base, self)
                if namespace is not None and namespace is not self and not name.startswith("_"):
                    value = namespace.lookup(name, evaluate)
                    if value is not None:
                        return value
        return None

    def _absolute(self, name: str) -> Value:
        if name == "torch" or name.startswith("torch."):
            return TorchName(name)
        namespace = self.project.find(name, self)
        return ModuleValue(namespace) if namespace else External(name)


def _module_bindings(body: list[ast.stmt]) -> Iterator[tuple[str, Binding]]:
    """Every module-level binding, in order, with compound statements opened."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name, statement
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                if alias.name != "*":
                    bound = alias.asname or alias.name.split(".")[0]
                    yield bound, _Import.of(alias, statement)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                for name in _target_names(target):
                    yield name, statement
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            for name in _target_names(statement.target):
                yield name, statement
        elif isinstance(statement, ast.If):
            yield from _module_bindings(statement.body)
            yield from _module_bindings(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _module_bindings(statement.body)
            for handler in statement.handlers:
                yield from _module_bindings(handler.body)
            yield from _module_bindings(statement.orelse)
            yield from _module_bindings(statement.finalbody)
        elif isinstance(statement, (ast.With, ast.For, ast.While)):
            yield from _module_bindings(statement.body)


class _Import(ast.alias):
    """An alias that remembers its statement."""

    statement: ast.Import | ast.ImportFrom

    @staticmethod
    def of(alias: ast.alias, statement: ast.Import | ast.ImportFrom) -> _Import:
        bound = _Import(name=alias.name, asname=alias.asname)
        bound.statement = statement
        ast.copy_location(bound, alias)
        return bound


def import_statement(binding: Binding) -> ast.Import | ast.ImportFrom | None:
    """The import statement of a binding that is an import."""
    return binding.statement if isinstance(binding, _Import) else None


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(element.value if isinstance(element, ast.Starred) else element)


class Project:
    """The files that import each other: finds and parses modules on demand and keeps them."""

    def __init__(self) -> None:
        self._namespaces: dict[Path, Namespace | None] = {}
        self._used: set[Path] = set()
        self._size = 0
        self._roots: dict[Path, tuple[Path, str]] = {}
        self._found: dict[tuple[str, Path], Path | None] = {}

    def forget_values(self) -> None:
        """Start afresh for the next file, so that nothing found in it depends on the files before; parses are kept."""
        self._used.clear()
        for namespace in self._namespaces.values():
            if namespace is not None:
                namespace.forget_values()

    def root_of(self, path: Path) -> tuple[Path, str]:
        """The folder that absolute imports start from, and the dotted name of the package that holds ``path``."""
        known = self._roots.get(path.parent)
        if known is not None:
            return known
        folder = path.parent
        parts: list[str] = []
        while (folder / "__init__.py").is_file() and folder.parent != folder:
            parts.insert(0, folder.name)
            folder = folder.parent
        root = self._roots[path.parent] = (folder, ".".join(parts))
        return root

    def open(self, source: Source) -> Namespace:
        """The namespace of a file being checked. Raises SourceError where it does not parse."""
        known = self._namespaces.get(source.path)
        if known is not None and known.source.data == source.data:
            return known
        _, package = self.root_of(source.path)
        namespace = Namespace(source, package, source.path.name == "__init__.py", self)
        self._keep(source.path, namespace)
        return namespace

    def find(self, name: str, importer: Namespace) -> Namespace | None:
        """The module of that absolute name, if it belongs to the importer's project."""
        if not name or name == "torch" or name.startswith("torch."):
            return None
        root, package = self.root_of(importer.path)
        parts = name.split(".")
        own = package.split(".")[0] if package else ""
        if parts[0] != own and root.name in LIBRARY_FOLDERS:
            return None
        key = (name, root)
        if key not in self._found:
            path = root.joinpath(*parts)
            candidates = (path.with_name(path.name + ".py"), path / "__init__.py")
            self._found[key] = next((c for c in candidates if c.is_file()), None)
        found = self._found[key]
        if found is None or (found not in self._used and len(self._used) >= MAX_FILES_FOLLOWED):
            return None
        self._used.add(found)
        return self._load(found)

    def _load(self, path: Path) -> Namespace | None:
        if path in self._namespaces:
            self._namespaces[path] = known = self._namespaces.pop(path)
            return known
        namespace: Namespace | None = None
        try:
            if path.is_file():
                namespace = self.open(Source(path, path.read_bytes()))
        except (OSError, SourceError):
            namespace = None
        self._keep(path, namespace)
        return namespace

    def _keep(self, path: Path, namespace: Namespace | None) -> None:
        self._namespaces[path] = namespace
        self._size += len(namespace.source.data) if namespace is not None else 0
        while self._size > MAX_PROJECT_BYTES and len(self._namespaces) > 1:
            oldest = self._namespaces.pop(next(iter(self._namespaces)))
            self._size -= len(oldest.source.data) if oldest is not None else 0
