"""What a file takes of what another defines, and which of its own definitions do."""

from __future__ import annotations

import ast
import operator
import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint import contents
from amplint.compiling import kept, ordinary
from amplint.infer.names.folders import module_file, root_of, starts_of
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.references import references
from amplint.infer.syntax.scripts import is_script
from amplint.project.files import parsed
from amplint.project.mentions import definitions

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

    from amplint.project.mentions import Definition
    from amplint.source import Source

ANY = "*"
"""What a file takes that imports all names of another."""
_IDLE = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BY_TEXT = re.compile(rb"\b(?:globals|locals|vars|eval|exec|__getattr__|__subclasses__|getmembers)\b|sys\.modules")
_SPACE = re.compile(r"\s")
_BUILTINS = frozenset(("globals", "eval", "exec", "getmembers"))
_OF_HERE = frozenset(("locals", "vars"))
_ASKING = frozenset(("isinstance", "issubclass"))


@ordinary
class File:
    """One file of a project; ``installed``: for others to import from."""

    def __init__(self, path: Path, source: Source, installed: bool) -> None:
        self.path = path
        self.installed = installed
        self.module = path.parent.name if path.stem == "__init__" else path.stem
        self._source = source
        self._tree = source.tree

    @kept
    def found(self) -> dict[str, Definition]:
        """What the file defines at its top."""
        return definitions(self._tree)

    @kept
    def by_text(self) -> bool:
        """Whether the file may find its own definitions by their names, or all of them."""
        if not _BY_TEXT.search(self._source.data):
            return False
        return "__getattr__" in self.found or any(map(_finds, nodes_below(self._tree)))

    @kept
    def names(self) -> set[str]:
        """The variables of the file."""
        return {node.id for node in nodes_of_kind(self._tree, ast.Name)}

    @kept
    def only_defines(self) -> bool:
        """Whether the file runs nothing of its own: it imports, defines, and names or calls what it does not define."""
        pending, own = [*self._tree.body], self.found.keys()
        while pending:
            statement = pending.pop()
            if isinstance(statement, (ast.Try, ast.If)) and not is_script(statement):
                parts = [*ast.iter_child_nodes(statement)]
                pending += [part for part in parts if isinstance(part, ast.stmt)]
                pending += [s for part in parts if isinstance(part, ast.ExceptHandler) for s in part.body]
            elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)):
                if any(isinstance(node, ast.Name) and node.id in own for node in ast.walk(statement)):
                    return False
            elif not isinstance(statement, _IDLE):
                return False
        return True

    @kept
    def tried(self) -> set[str]:
        """What of its own the file uses where it is run as a program."""
        nodes = (node for s in self._tree.body if is_script(s) for node in ast.walk(s))
        return {node.id for node in nodes if isinstance(node, ast.Name)} & self.found.keys()

    def is_plain(self, definition: Definition, *, by_base: bool, reached: bool) -> bool:
        """Whether nothing but its name leads to a definition: nothing decorates it, and no base of a class does.

        ``by_base``: the project finds classes by what they derive from, so that only torch's bases and those of the
        file itself are known not to lead there. Of what others install, a base of another library may do so, unless
        ``reached``: the project reaches most of what it defines.
        """
        if definition.decorator_list:
            return False
        if not isinstance(definition, ast.ClassDef):
            return True
        if by_base:
            return not definition.keywords and all(map(self._is_torchs_or_own, definition.bases))
        return not definition.keywords and (
            reached or not self.installed or all(map(self._is_known_base, definition.bases))
        )

    def _is_torchs_or_own(self, base: ast.expr) -> bool:
        return id(base) in self._torch or (isinstance(base, ast.Name) and base.id in self.found)

    def _is_known_base(self, base: ast.expr) -> bool:
        """Whether a base is torch's, the file's own, or another file's of the project."""
        if self._is_torchs_or_own(base):
            return True
        if isinstance(base, ast.Attribute):
            return isinstance(base.value, ast.Name) and base.value.id in self._modules
        name = base.id if isinstance(base, ast.Name) else ""
        imports = nodes_of_kind(self._tree, ast.ImportFrom)
        taking = (node for node in imports if any((a.asname or a.name) == name for a in node.names))
        return any(imported_from(node, self.path) is not None for node in taking)

    def is_of_torch(self, cls: ast.ClassDef) -> bool:
        """Whether a class derives from torch's alone."""
        return bool(cls.bases) and all(id(base) in self._torch for base in cls.bases)

    def bases(self, definition: Definition) -> list[Definition]:
        """The classes of the file that one derives from."""
        bases = definition.bases if isinstance(definition, ast.ClassDef) else []
        named = (self.found.get(base.id) for base in bases if isinstance(base, ast.Name))
        return [base for base in named if isinstance(base, ast.ClassDef)]

    def users(self, definition: Definition, apart: Container[str] = ()) -> list[Definition] | None:
        """The other definitions of the file that mention one; None where anything else in it does, but for what assigns
        a name of ``apart``."""
        mentioning = {id(s): s for s, _ in self._naming.get(definition.name, ()) if s is not definition}
        return self._defining(s for s in mentioning.values() if not is_script(s) and _assigned(s) not in apart)

    def assigned_of(self, definition: Definition) -> list[str]:
        """The names that the file assigns, at its top, something that mentions a definition, and mentions nowhere."""
        names = (_assigned(s) for s, _ in self._naming.get(definition.name, ()))
        return [name for name in names if name is not None and len(self._naming.get(name, ())) == 1]

    def reaching(self, target: Definition) -> dict[str, list[Definition]] | None:
        """By name, a definition of the file and those that mention it, or one of these, with who mentions each; None
        where the file runs one, as a program would."""
        found: dict[str, list[Definition]] = {}
        pending = [target]
        while pending:
            one = pending.pop()
            if one.name not in found:
                naming = [s for s, n in self._naming.get(one.name, ()) if not isinstance(n, ast.Constant)]
                if not all(isinstance(statement, _DEFINITIONS) for statement in naming):
                    return None
                found[one.name] = [d for d in self.found.values() if d is not one and any(d is s for s in naming)]
                pending += found[one.name]
        return found

    def users_of(self, file: File, name: str) -> list[Definition] | None:
        """The definitions that mention what another file calls by a name, other than a variable that this one defines
        or imports from elsewhere; None where anything else does, or hands it on."""
        elsewhere = {alias.asname or alias.name for alias in self._strange(file, name)}
        elsewhere |= {alias.asname for alias in self._aliases if alias.asname and alias.asname != alias.name}
        taking = self._taking(file, name)
        if taking and (any(map(self._hands_on, taking)) or (self.installed and not self._uses_any(file))):
            return None
        names = {name, *(alias.asname for alias in taking if alias.asname)}
        own = name in self.found or name in elsewhere or not (taking or ANY in {a.name for a in self._aliases})

        named_so = ((statement, node) for each in names for statement, node in self._naming.get(each, ()))
        return self._defining(
            statement
            for statement, node in named_so
            if not (own and isinstance(node, ast.Name) and node.id == name)
            and not (isinstance(node, ast.Attribute) and self._is_anothers(node, file))
            and not (isinstance(node, ast.Constant) and _assigned(statement) == "__all__" and not self._binds(name))
        )

    def _binds(self, name: str) -> bool:
        """Whether the file defines, assigns or imports a name, or all that another one has, or finds it by its text."""
        imported = {alias.asname or alias.name for alias in self._aliases}
        assigned = (node for _, node in self._naming.get(name, ()) if isinstance(node, ast.Name))
        stored = any(isinstance(node.ctx, ast.Store) for node in assigned)
        return name in self.found or not imported.isdisjoint((name, ANY)) or stored or self.by_text

    def imports(self, file: File, name: str) -> bool:
        """Whether this file may import what another calls by a name."""
        return bool(self._taking(file, name))

    def _taking(self, file: File, name: str) -> list[ast.alias]:
        known = {id(alias) for alias in self._strange(file, name)}
        return [alias for alias in self._aliases if alias.name == name and id(alias) not in known]

    def _strange(self, file: File, name: str) -> list[ast.alias]:
        """What is imported by a name, or under it, from elsewhere than from another file."""
        imports = nodes_of_kind(self._tree, ast.ImportFrom)
        named = ((node, alias) for node in imports for alias in node.names if name in (alias.name, alias.asname))
        return [alias for node, alias in named if alias not in self._of(node, file)]

    def _of(self, statement: ast.ImportFrom, file: File) -> list[ast.alias]:
        """What a statement imports from another file, or from the ``__init__`` that has it from there."""
        if self._may_take(statement, file):
            return statement.names
        module = imported_from(statement, self.path)
        if module is None or module.stem != "__init__" or module in (file.path, self.path):
            return []
        handed = _handed_on(module, file.path, contents.age())
        return [a for a in statement.names if handed and (a.name in handed or a.name == ANY or ANY in handed)]

    def names_or_takes(self, file: File) -> bool:
        """Whether this file imports another one, or has its name in a text of one word, such as a path."""
        word = re.compile(rf"\b{re.escape(file.module)}\b")
        texts = (n.value for n in nodes_of_kind(self._tree, ast.Constant) if isinstance(n.value, str))
        named = any(word.search(text) and not _SPACE.search(text) for text in texts)
        return named or any(True for _ in self.taken(file))

    def taken(self, file: File) -> Iterator[str | None]:
        """Names that this file takes from another, or its own name: :data:`ANY` with all of them, None where it may
        take any."""
        module = file.module
        modules: set[str] = set()
        for node in nodes_of_kind(self._tree, ast.Import, ast.ImportFrom, ast.Constant):
            if isinstance(node, ast.ImportFrom) and (own := self._of(node, file)):
                yield from (alias.name for alias in own)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                aliases = [a for a in node.names if a.name.rpartition(".")[2] == module]
                modules |= {a.asname or a.name for a in aliases if self._module(node, a) in (None, file.path)}
            elif isinstance(node.value, str) and node.value.endswith(f".{module}"):
                yield None
        yield from (None if "." in name else name for name in modules)
        if not modules:
            return
        attributes = nodes_of_kind(self._tree, ast.Attribute)
        asked_of = {id(n.value): n.attr for n in attributes if n.attr != "__dict__"}
        named = (node for node in nodes_of_kind(self._tree, ast.Name) if node.id in modules)
        yield from (asked_of.get(id(node)) for node in named if id(node) not in self._local)

    @kept
    def _local(self) -> set[int]:
        """The names, by ``id``, of variables that functions have of their own."""
        found: set[int] = set()
        for function in nodes_of_kind(self._tree, ast.FunctionDef, ast.AsyncFunctionDef):
            names = [node for node in nodes_below(function) if isinstance(node, ast.Name)]
            own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
            own |= {node.arg for node in nodes_below(function) if isinstance(node, ast.arg)}
            found |= {id(node) for node in names if node.id in own}
        return found

    def _module(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> Path | None:
        """The file of the module that is imported under a name; None where no file is known."""
        if isinstance(statement, ast.Import):
            return _file_of(alias.name, 0, self.path)
        return _file_of(f"{statement.module or ''}.{alias.name}".strip("."), statement.level, self.path)

    def _may_take(self, statement: ast.ImportFrom, file: File) -> bool:
        """Whether what this file imports from may be another: its module has that name, and is no other file."""
        module = (statement.module or "").rpartition(".")[2]
        return module == file.module and imported_from(statement, self.path) in (None, file.path)

    def _hands_on(self, alias: ast.alias) -> bool:
        """Whether what is imported is there for others to import: in a package's ``__init__``, or under its own name
        once more, which says so (PEP 484)."""
        exported = self.path.stem == "__init__" and self.installed
        return exported or self.by_text or alias.asname == alias.name

    def _uses_any(self, file: File) -> bool:
        """Whether anything that is imported from another file is used: else it is all there for others to import."""
        taking = (alias for node in nodes_of_kind(self._tree, ast.ImportFrom) for alias in self._of(node, file))
        return not self.names.isdisjoint(alias.asname or alias.name for alias in taking)

    def _defining(self, statements: Iterator[ast.stmt]) -> list[Definition] | None:
        """Statements, where each is a definition at the top of the file."""
        users = [*dict.fromkeys(statements)]
        found = [self.found.get(getattr(statement, "name", "")) for statement in users]
        return [d for d in found if d is not None] if all(map(operator.is_, found, users)) else None

    @kept
    def _aliases(self) -> list[ast.alias]:
        return [alias for node in nodes_of_kind(self._tree, ast.Import, ast.ImportFrom) for alias in node.names]

    @kept
    def _torch(self) -> set[int]:
        return {id(reference.node) for reference in references(self._tree)}

    @kept
    def _passed_over(self) -> set[int]:
        """What uses nothing: torch's own, annotations, tests of a type or for a text; and words, where nobody else may
        look for what they name."""
        tree = self._tree
        asked = (n.args[1:] for n in nodes_of_kind(tree, ast.Call) if getattr(n.func, "id", "") in _ASKING)
        compared = (part for n in nodes_of_kind(tree, ast.Compare) for part in (n.left, *n.comparators))
        read = nodes_of_kind(tree, ast.Constant) if not self.installed else compared
        texts = {id(part) for part in read if isinstance(part, ast.Constant) and not _is_path(part.value)}
        functions = nodes_of_kind(tree, ast.FunctionDef, ast.AsyncFunctionDef)
        annotated = [node.returns for node in functions]
        annotated += [node.annotation for node in nodes_of_kind(tree, ast.arg, ast.AnnAssign)]
        outer = [*(part for parts in asked for part in parts), *(node for node in annotated if node is not None)]
        return self._torch | texts | {id(part) for node in outer for part in ast.walk(node)}

    def _is_anothers(self, node: ast.Attribute, file: File) -> bool:
        """Whether an attribute is what a third file defines by that name, asked of its module."""
        path = self._modules.get(node.value.id) if isinstance(node.value, ast.Name) else None
        return path not in (None, file.path) and _defines(path, node.attr)

    @kept
    def _modules(self) -> dict[str, Path]:
        """By variable, the file of the module that is imported there."""
        found: dict[str, Path | None] = {}
        for node in nodes_of_kind(self._tree, ast.Import, ast.ImportFrom):
            own = {a.asname or a.name: self._module(node, a) for a in node.names}
            found |= {name: path for name, path in own.items() if "." not in name}
        return {name: path for name, path in found.items() if path is not None}

    @kept
    def _naming(self) -> dict[str, list[tuple[ast.stmt, ast.AST]]]:
        """What names something, by the name, with the statement at the top of the file; imports name nothing yet."""
        found: dict[str, list[tuple[ast.stmt, ast.AST]]] = defaultdict(list)
        for statement in self._tree.body:
            for node in nodes_below(statement):
                if id(node) not in self._passed_over:
                    for name in _named(node):
                        found[name].append((statement, node))
        return found


def _assigned(statement: ast.stmt) -> str | None:
    """The one name that a statement assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def imported_from(statement: ast.ImportFrom, path: Path) -> Path | None:
    """The file of the project that another one, at ``path``, imports from; None where there is no such file."""
    return _file_of(statement.module or "", statement.level, path)


def _file_of(module: str, level: int, path: Path) -> Path | None:
    """The file of a module, or a package's ``__init__``, that a file at ``path`` imports."""
    folders = (path.parents[min(level, len(path.parents)) - 1],) if level else starts_of(module, *root_of(path.parent))
    return module_file(folders, module)


@lru_cache(maxsize=4096)
def _handed_on(path: Path, file: Path, age: int) -> frozenset[str]:
    """The names that a file has from another, or from a package's ``__init__`` that has them from there."""
    source = parsed(path)
    found: set[str] = set()
    for node in nodes_of_kind(source.tree, ast.ImportFrom) if source is not None else ():
        module = imported_from(node, path)
        if module == file:
            found |= {alias.name for alias in node.names}
        elif module is not None and module.stem == "__init__" and module.parent.is_relative_to(path.parent):
            found |= {alias.name for alias in node.names} & _handed_on(module, file, age) if module != path else set()
    return frozenset(found)


def has_another(tree: ast.Module, path: Path, file: Path, name: str) -> bool:
    """Whether a file, at ``path``, imports what a third one defines by a name, and not what ``file`` does."""
    imports = nodes_of_kind(tree, ast.ImportFrom)
    taking = [node for node in imports if any(alias.name == name for alias in node.names)]
    modules = [imported_from(node, path) for node in taking]
    return bool(modules) and all(module not in (None, file) and _defines(module, name) for module in modules)


def takes_from_module(tree: ast.Module, name: str, module: ast.Module) -> bool:
    """Whether a file means a module by a name that something in the module has too: it takes of what it calls so only
    what the module defines."""
    attributes = nodes_of_kind(tree, ast.Attribute)
    if any(node.attr == name for node in attributes):
        return False
    taken = {id(node.value): node.attr for node in attributes}
    asked = [taken.get(id(node)) for node in nodes_of_kind(tree, ast.Name) if node.id == name]
    stored = {node.id for node in nodes_of_kind(module, ast.Name) if isinstance(node.ctx, ast.Store)}
    return bool(asked) and (stored | definitions(module).keys()).issuperset(asked)


def _defines(path: Path | None, name: str) -> bool:
    source = parsed(path) if path is not None else None
    return source is not None and name in definitions(source.tree)


def _named(node: ast.AST) -> Iterator[str]:
    """What a node names, if it is a name, an attribute, or a string that ends in one."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.rpartition(".")[2].rpartition(":")[2].rpartition("/")[2]


def _is_path(value: object) -> bool:
    """Whether a text may name something within a module."""
    return isinstance(value, str) and not value.isidentifier()


def _finds(node: ast.AST) -> bool:
    """Whether a node finds what a file defines by its name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _OF_HERE and not node.args
    if isinstance(node, ast.Attribute):
        in_modules = node.attr == "modules" and isinstance(node.value, ast.Name) and node.value.id == "sys"
        return in_modules or node.attr in ("__subclasses__", "getmembers")
    return isinstance(node, ast.Name) and node.id in _BUILTINS
