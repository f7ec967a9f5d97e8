"""What a package defines and leaves: its other files take from the same file by name, and nothing in the project
mentions this.

A file that no other takes from is the user's to take from, and so is one that others take whole. A class whose base is
not torch's may be found by that base, and what is decorated may be registered by it.
"""

from __future__ import annotations

import ast
import operator
import os
import re
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from amplint import contents
from amplint.infer.names.folders import LIBRARY_FOLDERS, is_file, project_around, root_of, starts
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.references import references
from amplint.infer.syntax.scripts import is_script
from amplint.project.files import TooLargeError, parsed, read_all, spelling
from amplint.project.layout import MAX_TEXT_BYTES, TEXTS
from amplint.project.mentions import definitions
from amplint.project.scopes import scope_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts
    from amplint.project.mentions import Definition
    from amplint.source import Source

MAX_PARSED = 40
"""Files that spell the name of a module or of what it defines; where more do, nothing is said."""
_BY_TEXT = re.compile(rb"\b(?:globals|locals|vars|eval|__getattr__|__subclasses__|getmembers)\b|sys\.modules")
"""What may find the definitions of its own file by their names, or all of them."""


class Leftovers:
    """What a file of a package defines and nothing mentions; found for the definitions that are asked for."""

    def __init__(self, facts: FileFacts) -> None:
        scope = scope_of(facts)
        self._path = facts.path
        self._tree = facts.source.tree
        self._by_text = _BY_TEXT.search(facts.source.data) is not None
        self._scope = scope.folder if scope.whole else None
        self._known: dict[str, bool] = {}

    def hold(self, row: int) -> bool:
        """Whether a line stands in a definition that nothing in the project mentions but such, while other files of the
        package take what else the file defines."""
        if self._scope is None or self._path.stem == "__init__" or self._by_text:
            return False
        target = next((d for d in self._found.values() if d.lineno <= row <= (d.end_lineno or row)), None)
        if target is None:
            return False
        if target.name not in self._known:
            self._known[target.name] = self._covers(target) and self._is_shared
        return self._known[target.name]

    @cached_property
    def _found(self) -> dict[str, Definition]:
        return definitions(self._tree)

    @cached_property
    def _torch(self) -> set[int]:
        return {id(reference.node) for reference in references(self._tree)}

    def _covers(self, target: Definition) -> bool:
        """Whether nothing mentions a definition, but itself and others that nothing mentions."""
        pending, seen = [target], {target.name}
        while pending:
            definition = pending.pop()
            users = self._users(definition) if self._is_plain(definition) else None
            if users is None or self._is_mentioned_elsewhere(definition.name):
                return False
            leading = [*users, *self._bases(definition)]
            pending += [other for other in leading if other.name not in seen]
            seen |= {other.name for other in leading}
        return True

    def _is_plain(self, definition: Definition) -> bool:
        """Whether a definition is a function or a class all of whose bases are torch's or the file's own, and nothing
        decorates it."""
        if definition.decorator_list:
            return False
        if not isinstance(definition, ast.ClassDef):
            return True
        others = [base for base in definition.bases if id(base) not in self._torch]
        return not definition.keywords and len(self._bases(definition)) == len(others)

    def _bases(self, definition: Definition) -> list[Definition]:
        """The classes of the file that one derives from."""
        bases = definition.bases if isinstance(definition, ast.ClassDef) else []
        named = (self._found.get(base.id) for base in bases if isinstance(base, ast.Name))
        return [base for base in named if isinstance(base, ast.ClassDef)]

    def _users(self, definition: Definition) -> list[Definition] | None:
        """The other definitions of the file that mention one; None where anything else in it does."""
        users = [statement for statement in self._mentioning[definition.name] if statement is not definition]
        found = [self._found.get(getattr(statement, "name", "")) for statement in users]
        return [d for d in found if d is not None] if all(map(operator.is_, found, users)) else None

    @cached_property
    def _mentioning(self) -> dict[str, list[ast.stmt]]:
        """The statements at the top of the file that mention what it defines, by name: not what tries the file out when
        it is run itself."""
        found: dict[str, list[ast.stmt]] = {name: [] for name in self._found}
        for statement in (statement for statement in self._tree.body if not is_script(statement)):
            for name in {name for node in nodes_below(statement) for name in _named(node)} & found.keys():
                found[name].append(statement)
        return found

    def _is_mentioned_elsewhere(self, name: str) -> bool:
        """Whether another file of the project mentions a name, or too many spell it."""
        assert self._scope is not None
        paths = spelling(self._scope, True, contents.age(), name.encode())
        if paths is None or len(paths) > MAX_PARSED:
            return True
        others = (parsed(path) for path in paths if path != self._path)
        if any(other is not None and self._is_mentioned_in(other, name) for other in others):
            return True
        return _is_named_in_texts(self._scope, name)

    def _is_mentioned_in(self, other: Source, name: str) -> bool:
        """Whether a file mentions a name, other than a variable that it defines or imports from elsewhere."""
        tree = other.tree
        nodes = [*ast.walk(tree)]
        imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
        strange = [node for node in imports if not self._may_be_taken_by(node, other.path)]
        aliases = {id(alias): alias.asname or alias.name for node in strange for alias in node.names}
        own = name in definitions(tree) or name in aliases.values()
        skipped = (ast.Name,) if own else ()
        return any(name in _named(node) for node in nodes if not isinstance(node, skipped) and id(node) not in aliases)

    def _may_be_taken_by(self, statement: ast.ImportFrom, other: Path) -> bool:
        """Whether what another file imports from may be the file: its module has that name, and is no other file."""
        *parents, name = (statement.module or "").split(".")
        if name != self._path.stem:
            return False
        if statement.level:
            folders: tuple[Path, ...] = (other.parents[min(statement.level, len(other.parents)) - 1],)
        else:
            folders = starts(root_of(other.parent)[0])
        modules = (folder.joinpath(*parents, f"{name}.py") for folder in folders)
        found = next((module for module in modules if is_file(module)), None)
        return found in (None, self._path)

    @cached_property
    def _is_shared(self) -> bool:
        """Whether other files take what the file defines by its name, and none takes all of it or lets its users do
        so."""
        assert self._scope is not None
        shared = False
        paths = spelling(self._scope, True, contents.age(), self._path.stem.encode())
        if paths is None or len(paths) > MAX_PARSED:
            return False
        for other in paths:
            source = parsed(other) if other != self._path else None
            for name in self._taken(source) if source is not None else ():
                if name is None or other.name == "__init__.py":
                    return False
                shared = shared or name in self._found
        return shared

    def _taken(self, other: Source) -> Iterator[str | None]:
        """Names that another file takes from the file, or its own name; None where it may take any."""
        nodes, module = [*ast.walk(other.tree)], self._path.stem
        modules: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and self._may_be_taken_by(node, other.path):
                yield from (None if alias.name == "*" else alias.name for alias in node.names)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name: alias.asname or alias.name for alias in node.names}
                modules |= {own for name, own in names.items() if name.rpartition(".")[2] == module}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(f".{module}"):
                yield None
        yield from (None if "." in name else name for name in modules)
        asked_of = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)} if modules else {}
        yield from (asked_of.get(id(node)) for node in nodes if isinstance(node, ast.Name) and node.id in modules)


def _named(node: ast.AST) -> Iterator[str]:
    """What a node names, if it is a name, an attribute, an import or a string that ends in one."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias):
        yield node.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.rpartition(".")[2].rpartition(":")[2].rpartition("/")[2]


def _is_named_in_texts(package: Path, name: str) -> bool:
    """Whether a test, example, configuration or page of the project has the word; so where it has too many."""
    texts = _texts(package, contents.age())
    word = re.compile(rb"\b%b\b" % re.escape(name.encode()))
    return texts is None or any(word.search(text) for text in texts)


@lru_cache(maxsize=1)
def _texts(package: Path, age: int) -> tuple[bytes, ...] | None:
    """What the files of a project hold that are no source of the package; None where they are too many."""
    try:
        return tuple(data for _, data in read_all(_beside(package)))
    except TooLargeError:
        return None


def _beside(package: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(project_around(package / "_") or package):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in LIBRARY_FOLDERS]
        within = package == Path(folder) or package in Path(folder).parents
        for file in (Path(folder, name) for name in names):
            with suppress(OSError):
                if file.suffix in TEXTS and not (within and file.suffix == ".py"):
                    yield from [file] if file.stat().st_size <= MAX_TEXT_BYTES else ()
