"""Names of a module, evaluated when first asked for, across the files of one project.

Imports of the project are read from disk whether or not their files were named to the command, so what is found in a
file does not depend on which others are checked. torch itself is never read: its names are facts of the op table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from amplint import contents
from amplint.compiling import kept, ordinary
from amplint.frozen import dataclass
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.lasting import Lasting, lasts
from amplint.infer.lattice.values import UNKNOWN, Const, External, Number, Text, TorchName, Union, Value, extreme
from amplint.infer.names.folders import member_of, module_file, root_of, starts_of
from amplint.infer.names.torch_spellings import canonical
from amplint.infer.syntax.autocast_switches import autocast_switches
from amplint.infer.syntax.bindings import Binding, import_statement, module_bindings, star_imports
from amplint.infer.syntax.bodies import OF_TENSORS, Body, attributes_set, body_of, globals_said
from amplint.infer.syntax.outline import Outline, Unparsed, outline
from amplint.infer.syntax.packages import package_of
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_FILES_FOLLOWED = 100
"""Files that the imports of one file are followed into, directly or not; what lies in more stays unknown."""
MAX_PROJECT_BYTES = 4_000_000
"""Source of the project files kept parsed at a time."""

_GLOBAL = re.compile(r"^[ \t]+global[ \t]", re.MULTILINE)

Evaluate = Callable[["Namespace", str, Binding], Value]


@ordinary
class Namespace:
    """The names of one module of the project.

    ``whole`` has the file parsed at once; otherwise its statements are parsed when their names are asked for. Raises
    SourceError where it cannot be read.
    """

    def __init__(self, source: Source, package: str, project: Project, *, whole: bool = False) -> None:
        self.source = source
        self.path = source.path
        self._filename = str(source.path)
        self.package = package
        self.project = project
        self.whole = whole
        self.bindings: dict[str, list[Binding | Unparsed]] = {}
        self.values: dict[str, Value] = {}
        self.given: dict[str, Value] = {}
        """What functions were seen to bind to names that they say are global."""
        self.lasting: dict[str, Lasting] = {}
        self._age = 0
        self._judged = False
        """Whether what is bound was evaluated for the facts of this file, which keep it."""
        self._pending: set[str] = set()
        self._bodies: dict[int, Body] = {}
        self.repeated: dict[int, frozenset[str]] = {}
        """By ``id`` of a function: the conditions that it tests more than once."""
        self._attributes_set: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        found = None if whole else _outline(source)
        if found is None:
            self._bind_whole()
        else:
            self._bind(found)

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the file."""
        return self.source.tree

    def _bind_whole(self) -> None:
        self.bindings.clear()
        for name, binding in module_bindings(self.tree.body):
            self.bindings.setdefault(name, []).append(binding)
        self.stars = tuple(star_imports(self.tree))

    def _bind(self, found: Outline) -> None:
        rows: list[tuple[int, str, Binding | Unparsed]] = [(part.row, name, part) for name, part in found.named]
        for statement in found.parsed.body:
            rows += [(statement.lineno, name, binding) for name, binding in module_bindings([statement])]
        for _, name, binding in sorted(rows, key=lambda row: row[0]):
            self.bindings.setdefault(name, []).append(binding)
        self.stars = tuple(star_imports(found.parsed))

    def parsed(self, name: str) -> list[Binding]:
        """The bindings of a name as syntax; raises SourceError where the file does not parse after all."""
        bindings = self.bindings.get(name, [])
        for number, binding in enumerate(bindings):
            if isinstance(binding, Unparsed):
                try:
                    bindings[number] = binding.parse(_text(self.source))
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    self._bind_whole()
                    return self.parsed(name)
        return [binding for binding in bindings if not isinstance(binding, Unparsed)]

    def body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Body:
        """What a walk over a function of this module tells; made once for each."""
        found = self._bodies.get(id(node))
        if found is None:
            found = body_of(node)
            computes = found.computes or not found.names.isdisjoint(self._of_tensors)
            found = self._bodies[id(node)] = found._replace(computes=computes)
        return found

    @kept
    def _of_tensors(self) -> frozenset[str]:
        """Names that the module takes from torch, or from another package whose functions are for tensors."""
        found = ((name, b) for name, bindings in self.bindings.items() for b in bindings if isinstance(b, ast.alias))
        taken = ((name, package_of(b, s)) for name, b in found if (s := import_statement(b)) is not None)
        return frozenset(name for name, package in taken if package in OF_TENSORS)

    @kept
    def autocast_switches(self) -> dict[int, frozenset[str]]:
        """By the ``id`` of a function, what switches its autocast regions; without a walk where no region can be."""
        return autocast_switches(self.tree) if "autocast" in self.source.text else {}

    def attributes_set(self, node: ast.ClassDef | None) -> tuple[frozenset[str], frozenset[str]]:
        """Attributes that the constructor of a class of this module sets, and that other code does.

        That is its other methods and, in the file that is analysed, everything else but constructors.
        """
        top: ast.Module | ast.ClassDef = self.tree if self.own or node is None else node
        found = self._attributes_set.get(id(top))
        if found is None:
            found = self._attributes_set[id(top)] = attributes_set(top)
        return found

    @property
    def own(self) -> bool:
        """Whether it is the file that is being analysed."""
        return self._filename == self.project.own_filename

    @property
    def defined(self) -> list[str]:
        """Names of the functions and classes that the module defines itself, in order. Raises SourceError."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return [name for name in [*self.bindings] if any(isinstance(b, kinds) for b in self.parsed(name))]

    def lookup(self, name: str, evaluate: Evaluate) -> Value | None:
        """The value of a module-level name; None where the module does not bind it.

        Of one that a function of the file that is analysed binds too, by ``global``, it is that or what functions were
        seen to bind it to; anything where there may be others. A flag or a number is what it usually is.
        """
        value = self._value(name, evaluate)
        rebound = self.rebound
        if not rebound or value is None or name not in rebound:
            return value
        if isinstance(value, Const) and value.value is not None:
            return _usual(value)
        bound = self.given.get(name)
        found = value if bound is None else Union((*options_of(value), *options_of(bound)))
        return found if self.rebound[name] else Union((*options_of(found), UNKNOWN))

    @kept
    def rebound(self) -> dict[str, bool]:
        """Names that functions of the file that is analysed say are global, and whether all of these are run then."""
        return globals_said(self.tree, self.body) if self.own and _GLOBAL.search(self.source.text) else {}

    def _value(self, name: str, evaluate: Evaluate) -> Value | None:
        if self._age != self.project.age:
            self.forget_values()
        value = self.values.get(name)
        if value is not None:
            if not self.own:
                self.project.cut += 1
            return value
        if name not in self.bindings:
            return None
        if name in self._pending:
            self.project.cut += 1
            return UNKNOWN
        kept = self.lasting.get(name)
        if kept is not None and self.project.may_follow(kept.needs):
            return kept.value
        try:
            bindings = self.parsed(name)
        except SourceError:
            return UNKNOWN
        return self._evaluate(name, bindings, evaluate) if bindings else None

    def _evaluate(self, name: str, bindings: list[Binding], evaluate: Evaluate) -> Value:
        project = self.project
        cut = project.cut
        self._pending.add(name)
        needs = project.begin_needs()
        try:
            options: list[Value] = []
            for binding in bindings:
                value = evaluate(self, name, binding)
                if all(value.key != other.key for other in options):
                    options.append(value)
            value = options[0] if len(options) == 1 else Union(tuple(options))
        finally:
            self._pending.discard(name)
            project.end_needs(needs)
        if self.own:
            self.values[name], self._judged = value, True
            return value
        value = value.closed({})
        if cut == project.cut and project.own not in needs and lasts(value):
            self.lasting[name] = Lasting(value, frozenset(needs))
            project.depends(self, name, needs)
        else:
            self.values[name] = value
        return value

    def forget_values(self) -> None:
        """Drop what was evaluated for one analysis.

        What lasts is kept, except by the file that is analysed itself: there, evaluating is what is recorded.
        """
        for value in self.values.values() if not self._judged else ():
            value.let_go(self)
        self._judged = False
        self.values.clear()
        self.given.clear()
        self.__dict__.pop("rebound", None)
        self._pending.clear()
        self._age = self.project.age
        if self.own:
            self.lasting.clear()

    def imported(self, alias: ast.alias, statement: ast.Import | ast.ImportFrom, evaluate: Evaluate) -> Value:
        """What an import statement binds."""
        if isinstance(statement, ast.Import):
            if alias.asname is None:
                top = alias.name.split(".")[0]
                return self._absolute(top)
            return self._absolute(alias.name)
        base = self.module_of(statement)
        if base == "torch" or base.startswith("torch."):
            return TorchName(canonical(f"{base}.{alias.name}"))
        namespace = self.project.find(base, self)
        if namespace is None:
            submodule = self.project.find(f"{base}.{alias.name}", self) if base else None
            return ModuleValue(submodule) if submodule else External(f"{base}.{alias.name}")
        value = namespace.provided(alias.name, evaluate)
        if value is not None:
            return value
        submodule = self.project.find(f"{base}.{alias.name}", self)
        return ModuleValue(submodule) if submodule else UNKNOWN

    def module_of(self, statement: ast.ImportFrom) -> str:
        """The absolute name of the module that a ``from`` statement takes from; empty for a folder without package."""
        if not statement.level:
            return statement.module or ""
        package = self.package or member_of(self.path.parent)[1]
        parts = package.split(".") if package else []
        parts = parts[: len(parts) - (statement.level - 1)] if statement.level > 1 else parts
        return ".".join([*parts, statement.module] if statement.module else parts)

    def provided(self, name: str, evaluate: Evaluate) -> Value | None:
        """What importing a name from the module gives: one that it binds, or one that it has by ``import *``."""
        value = self.lookup(name, evaluate)
        return value if value is not None else self.star_import(name, evaluate)

    def star_import(self, name: str, evaluate: Evaluate) -> Value | None:
        """A name that a ``from … import *`` of the project provides."""
        if name.startswith("_") or f"* {name}" in self._pending:
            return None
        self._pending.add(f"* {name}")
        try:
            return self._from_stars(name, evaluate)
        finally:
            self._pending.discard(f"* {name}")

    def _from_stars(self, name: str, evaluate: Evaluate) -> Value | None:
        for statement in self.stars:
            namespace = self.project.find(self.module_of(statement), self)
            if namespace is not None and namespace is not self:
                value = namespace.provided(name, evaluate)
                if value is not None:
                    return value
        return None

    def _absolute(self, name: str) -> Value:
        if name == "torch" or name.startswith("torch."):
            return TorchName(name)
        namespace = self.project.find(name, self)
        return ModuleValue(namespace) if namespace else External(name)


@dataclass(frozen=True, slots=True, eq=False)
class ModuleValue(Value):
    """A module of the project, or a builtin namespace."""

    namespace: Namespace

    @property
    def rests_on(self) -> Iterable[Value]:
        return ()


def _usual(value: Const) -> Value:
    """A value that code out of sight may have changed."""
    if isinstance(value.value, str):
        return Text(value.value)
    if isinstance(value.value, (int, float)):
        return Number(type(value.value).__name__, value.value, extreme(value.value))
    return UNKNOWN


def _text(source: Source) -> str:
    return source.text.removeprefix("\ufeff")


def _outline(source: Source) -> Outline | None:
    """The outline of a file; None where only the whole can be parsed. Raises SourceError where it does not decode."""
    try:
        return outline(_text(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class Project:
    """The files that import each other: finds and parses modules on demand and keeps them."""

    def __init__(self) -> None:
        self._namespaces: dict[Path, Namespace | None] = {}
        self._imported: Namespace | None = None
        """The file that is being analysed, as others found it that import it: they will again."""
        self.own: Path | None = None
        """The file that is being analysed."""
        self.own_filename = ""
        self.age = 0
        """How many analyses have begun."""
        self.cut = 0
        """How often a value was met that this analysis alone has, or that depends on what else was being evaluated."""
        self.followed: set[Path] = set()
        """The other files that the analysis rests on."""
        self._needs: list[set[Path]] = []
        self._allowed: set[frozenset[Path]] = set()
        """Files that were counted as followed together."""
        self._dependents: dict[Path, set[tuple[Path, str]]] = {}
        self._size = 0
        self._roots: dict[Path, tuple[Path, str]] = {}
        self._found: dict[tuple[str, Path, str], Path | None] = {}
        self._contents = contents.age()

    def begin(self, source: Source) -> Namespace:
        """Start afresh with a file, so that nothing found in it depends on the files before. Raises SourceError.

        Parses are kept, and values of other files that would be the same if they were evaluated again.
        """
        if self._contents != contents.age():
            self._contents = contents.age()
            self._imported = None
            for path in tuple(self._namespaces):
                self._drop(path)
        self.age += 1
        self.followed, self._allowed = set(), set()
        self._needs.clear()
        if self.own is not None and self.own != source.path:
            self._leave(self.own)
            self._imported = self._take(source.path)
        self.own, self.own_filename = source.path, str(source.path)
        namespace = self.open(source, whole=True)
        namespace.forget_values()
        return namespace

    def _leave(self, own: Path) -> None:
        """Have the file that was analysed found as it was before, unless it was analysed with another content."""
        before, imported = self._take(own), self._imported
        if before is not None:
            before.forget_values()
        if before is not None and imported is not None and before.source.data == imported.source.data:
            self._keep(own, imported)
        else:
            self._drop(own)

    def begin_needs(self) -> set[Path]:
        """Start to note the files that a value is made of."""
        needs: set[Path] = set()
        self._needs.append(needs)
        return needs

    def end_needs(self, needs: set[Path]) -> None:
        """Those files are also what the value is made of whose evaluation asked for this one."""
        self._needs.pop()
        if self._needs:
            self._needs[-1] |= needs

    def depends(self, namespace: Namespace, name: str, needs: set[Path]) -> None:
        """Note that a lasting value goes when one of these files is let go."""
        for path in needs:
            self._dependents.setdefault(path, set()).add((namespace.path, name))

    def may_follow(self, needs: frozenset[Path]) -> bool:
        """Count files as followed, unless that would be too many, or the one that is being analysed is among them."""
        if needs not in self._allowed:
            if self.own in needs or len(self.followed | needs) > MAX_FILES_FOLLOWED:
                return False
            self.followed |= needs
            self._allowed.add(needs)
        if self._needs:
            self._needs[-1] |= needs
        return True

    def root_of(self, path: Path) -> tuple[Path, str]:
        """The folder that absolute imports start from, and the dotted name of the package that holds ``path``."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = root_of(folder)
        return self._roots[folder]

    def open(self, source: Source, *, whole: bool = False) -> Namespace:
        """The namespace of a file, parsed whole where it is checked. Raises SourceError where it does not parse."""
        known = self._namespaces.get(source.path)
        if known is not None and known.source.data == source.data and known.whole >= whole:
            return known
        self._drop(source.path)
        _, package = self.root_of(source.path)
        namespace = Namespace(source, package, self, whole=whole)
        self._keep(source.path, namespace)
        return namespace

    def find(self, name: str, importer: Namespace) -> Namespace | None:
        """The module of that absolute name, if it belongs to the importer's project."""
        if not name or name == "torch" or name.startswith("torch."):
            return None
        root, package = self.root_of(importer.path)
        key = (name, root, package)
        if key not in self._found:
            self._found[key] = module_file(starts_of(name, root, package), name)
        found = self._found[key]
        if found is None:
            return None
        if found not in self.followed and len(self.followed) >= MAX_FILES_FOLLOWED:
            self.cut += 1
            return None
        self.followed.add(found)
        if self._needs:
            self._needs[-1].add(found)
        return self._load(found)

    def _load(self, path: Path) -> Namespace | None:
        if path in self._namespaces:
            self._namespaces[path] = known = self._namespaces.pop(path)
            return known
        try:
            return self.open(Source(path, contents.read(path)))
        except (OSError, SourceError):
            self._keep(path, None)
            return None

    def _keep(self, path: Path, namespace: Namespace | None) -> None:
        self._namespaces[path] = namespace
        self._size += len(namespace.source.data) if namespace is not None else 0
        while self._size > MAX_PROJECT_BYTES and len(self._namespaces) > 1:
            self._drop(next(iter(self._namespaces)))

    def _take(self, path: Path) -> Namespace | None:
        """A file, which is not kept any longer; the values that were made of it are."""
        taken = self._namespaces.pop(path, None)
        if taken is not None:
            self._size -= len(taken.source.data)
        return taken

    def _drop(self, path: Path) -> None:
        """Let a file go, and the values that were made of it."""
        self._take(path)
        for other, name in self._dependents.pop(path, ()):
            dependent = self._namespaces.get(other)
            if dependent is not None:
                dependent.lasting.pop(name, None)
