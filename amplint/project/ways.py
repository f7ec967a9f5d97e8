"""Whether every way that the project has into some code ends before it, or runs it in a constructor only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint import contents
from amplint.claims.conflicts import early_ends
from amplint.project.files import mentioning
from amplint.project.mentions import Definition, Function, Mention, definitions, made_of, mentions, runs_made_of
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from amplint.infer.state.facts import FileFacts
    from amplint.project.ends import Ends, Judging

MAX_FILES = 6
"""Files that mention one name; where more do, nothing is asked."""
MAX_ANALYSED = 4
"""Other files that are analysed for one file."""
MAX_DEFINITIONS = 24
"""Definitions that are looked at for one claim."""


class Scope(NamedTuple):
    """Where the files of a project lie: a folder, with those below it if ``whole``."""

    folder: Path
    whole: bool


class File(NamedTuple):
    """A file of the project, parsed."""

    path: Path
    tree: ast.Module


def ways_in(facts: FileFacts, judging: Judging) -> Ways:
    """The ways into the code of a file."""
    folder, package = facts.root
    scope = Scope(folder / package.partition(".")[0] if package else folder, bool(package))
    own = early_ends(facts)
    return Ways(
        File(facts.path, facts.source.tree), scope, lambda path: own if path == facts.path else judging.ends(path)
    )


class Ways:
    """The ways into the code of one file.

    A class is reached where it is made: through the class that makes it, whose ``forward`` may end before it gets
    there, or by what calls the function that makes it. A function is reached where it is called. What nothing in the
    project mentions, or something at the top level of a file, is for the project's user to reach.
    """

    def __init__(self, file: File, scope: Scope, ends: Callable[[Path], Ends]) -> None:
        self._file = file
        self._scope = scope
        self._ends = ends
        self.analysed = {file.path}
        """The files that the answers rest on, beside those that mention anything."""
        self._parsed: dict[Path, ast.Module | None] = {file.path: file.tree}
        self._known: dict[tuple[int, str, bool], bool] = {}

    def lead_nowhere(self, row: int, scenarios: tuple[str, ...]) -> bool:
        """Whether every way to a line ends before it in each of the scenarios; one way at least is seen."""
        target = next((d for d in definitions(self._file.tree).values() if _encloses(d, row)), None)
        if target is None:
            return False
        inner = [node for node in ast.walk(target) if node is not target and isinstance(node, Definition)]
        made = any(_encloses(node, row) for node in inner)
        return all(self._leads_nowhere(target, name, made) for name in scenarios)

    def _leads_nowhere(self, target: Definition, scenario: str, made: bool) -> bool:
        key = (target.lineno, scenario, made)
        if key not in self._known:
            walk = _Walk(self, scenario)
            self._known[key] = walk.ends(self._file, target, made=made) and walk.ended
        return self._known[key]

    def users(self, file: File, name: str) -> list[tuple[File, Mention]] | None:
        """The mentions of what a file defines, its own first; None where they are too many."""
        paths = mentioning(*self._scope, contents.age(), name.encode())
        if paths is None or len(paths) > MAX_FILES:
            return None
        found = [(file, mention) for mention in mentions(file.tree).get(name, ())]
        for path in paths:
            tree = self._tree(path)
            if path != file.path and tree is not None and name not in definitions(tree):
                found += [(File(path, tree), mention) for mention in mentions(tree).get(name, ())]
        return found

    def ends(self, file: File, function: Function) -> Mapping[str, int]:
        """The scenarios in which a function ends early."""
        self.analysed.add(file.path)
        return self._ends(file.path).get(function.lineno, {}) if len(self.analysed) <= MAX_ANALYSED else {}

    def _tree(self, path: Path) -> ast.Module | None:
        if path not in self._parsed:
            try:
                self._parsed[path] = Source(path, contents.read(path)).tree
            except (OSError, SourceError):
                self._parsed[path] = None
        return self._parsed[path]


class _Walk:
    """Follows the ways into a definition backwards, in one scenario; ``ended``: one was seen to end."""

    def __init__(self, ways: Ways, scenario: str) -> None:
        self.ended = False
        self._ways = ways
        self._scenario = scenario
        self._visited: set[tuple[Path, str, bool]] = set()

    def ends(self, file: File, target: Definition, *, made: bool) -> bool:
        """Whether every way into a definition ends before it.

        ``made``: what it makes is reached later than it is called, as an object of a class is.
        """
        key = (file.path, target.name, made)
        if key in self._visited:
            return True
        self._visited.add(key)
        if target.decorator_list or len(self._visited) > MAX_DEFINITIONS:
            return False
        users = self._ways.users(file, target.name)
        others = {(user.path, mention): user for user, mention in users or () if mention.definition is not target}
        if not others or any(mention.definition is None for _, mention in others):
            return False
        made = made or isinstance(target, ast.ClassDef)
        return all(self._ends_at(user, mention, target.name, made) for (_, mention), user in others.items())

    def _ends_at(self, file: File, mention: Mention, name: str, made: bool) -> bool:
        """Whether the way through one mention of a name ends before it brings anyone to what that stands for."""
        holder, method = mention.definition, mention.method
        assert holder is not None
        if mention.called and not made and method is not None and method.name == "__init__":
            self.ended = True
            return True
        if isinstance(holder, ast.ClassDef) and self._object_ends(file, holder, name):
            self.ended = True
            return True
        return self.ends(file, holder, made=made or not mention.called)

    def _object_ends(self, file: File, cls: ast.ClassDef, name: str) -> bool:
        """Whether calling an object of a class, or of those of its file that derive from it, ends before it uses what
        is made with a name, and no other method is there to be called that does."""
        family = [
            other
            for other in definitions(file.tree).values()
            if isinstance(other, ast.ClassDef)
            and (other is cls or any(isinstance(base, ast.Name) and base.id == cls.name for base in other.bases))
        ]
        forwards = [forward for one in family for forward in _forwards(one)]
        if not any(True for _ in _forwards(cls)) or runs_made_of(cls, name):
            return False
        return all(self._ends_before(file, forward, cls, name) for forward in forwards)

    def _ends_before(self, file: File, forward: Function, cls: ast.ClassDef, name: str) -> bool:
        row = self._ways.ends(file, forward).get(self._scenario)
        names = made_of(cls, forward, row) if row is not None and forward in cls.body else frozenset()
        return row is not None and names is not None and name not in names


def _forwards(cls: ast.ClassDef) -> Iterator[Function]:
    yield from (s for s in cls.body if isinstance(s, ast.FunctionDef) and s.name == "forward")


def _encloses(node: ast.stmt, row: int) -> bool:
    return node.lineno <= row <= (node.end_lineno or row)
