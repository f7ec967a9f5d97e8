"""Imports that a fix leaves without a use, and the edits that take them out."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.notebook.narrowing import in_the_same_cell
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_Statement = ast.Import | ast.ImportFrom


def without_orphans(source: Source, edits: Sequence[Edit]) -> list[Edit]:
    """Edits that take out each import of torch whose every use lies in what ``edits`` replace, and comes nowhere back.

    Names that others may read out of the file stay (:func:`is_exported`), and so do what had no use before and the
    imports in other cells of a notebook.
    """
    replaced = [edit.span for edit in edits if edit.span.start != edit.span.end]
    if not replaced:
        return []
    names = _Names.of(source)
    gone = names.used_only_in(replaced)
    gone -= {name for name in gone for edit in edits if re.search(rf"(?<![\w.]){re.escape(name)}\b", edit.content)}
    unused: dict[_Statement, tuple[ast.AST, list[ast.alias]]] = {}
    for name, found in names.imports.items():
        if name in gone and all(_of_torch(*entry[1:]) for entry in found) and not is_exported(source, name):
            for parent, statement, alias in found:
                unused.setdefault(statement, (parent, []))[1].append(alias)
    removals = (
        edit for statement, (parent, out) in unused.items() for edit in _removals(source, parent, statement, out)
    )
    return in_the_same_cell(edits, removals, source)


def is_exported(source: Source, local: str) -> bool:
    """Whether others may read a name out of a file: a package's ``__init__``, ``__all__``, a quoted annotation."""
    return source.path.name == "__init__.py" or local in _Names.of(source).quoted


class _Names:
    """The names that a file uses, imports and quotes; read once for all fixes of the file."""

    @staticmethod
    @lru_cache(maxsize=1)
    def of(source: Source) -> _Names:
        return _Names(source)

    def __init__(self, source: Source) -> None:
        self.imports: dict[str, list[tuple[ast.AST, _Statement, ast.alias]]] = {}
        self.quoted: set[str] = set()
        """Names that stand as a string of their own, and the words of quoted annotations."""
        uses: list[tuple[Span, str]] = []
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name):
                uses.append((source.span(node), node.id))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                self.quoted.add(node.value)
            for statement in ast.iter_child_nodes(node):
                if isinstance(statement, _Statement):
                    for alias in statement.names:
                        entry = (node, statement, alias)
                        self.imports.setdefault(alias.asname or alias.name.partition(".")[0], []).append(entry)
            annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
            if isinstance(annotation, ast.expr):
                self.quoted.update(_words(annotation))
        self._uses = sorted(uses, key=lambda use: use[0])
        self._starts = [span.start for span, _ in self._uses]
        self._count = Counter(name for _, name in uses)

    def used_only_in(self, places: Sequence[Span]) -> set[str]:
        """Names of which every use lies in one of the places, and of which there is one."""
        inside = {
            index
            for place in places
            for index in range(bisect_left(self._starts, place.start), bisect_left(self._starts, place.end))
            if place.contains(self._uses[index][0])
        }
        found = Counter(self._uses[index][1] for index in inside)
        return {name for name, count in found.items() if count == self._count[name]}


def _words(annotation: ast.expr) -> Iterator[str]:
    """The words of the strings in an annotation."""
    for part in ast.walk(annotation):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from re.findall(r"\w+", part.value)


def _of_torch(statement: _Statement, alias: ast.alias) -> bool:
    module = alias.name if isinstance(statement, ast.Import) else "" if statement.level else statement.module or ""
    return module.partition(".")[0] == "torch"


def _removals(source: Source, parent: ast.AST, statement: _Statement, unused: list[ast.alias]) -> list[Edit]:
    """Take imported names out of their statement; the whole statement where all of them go."""
    whole, kept = source.span(statement), [alias for alias in statement.names if alias not in unused]
    if kept:
        last = statement.names.index(kept[-1])
        edits = [
            Edit(Span(source.span(alias).start, source.span(after).start), "")
            for alias, after in pairwise(statement.names[: last + 1])
            if alias in unused
        ]
        behind = Span(source.span(kept[-1]).end, source.span(statement.names[-1]).end)
        return edits if last + 1 == len(statement.names) else [*edits, Edit(behind, "")]
    before = source.line(whole.start.row)[: whole.start.column - 1]
    rest = source.line(whole.end.row)[whole.end.column - 1 :].strip()
    blocks = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    alone = not isinstance(parent, ast.Module) and [statement] in blocks
    if before.strip() or alone or (rest and not rest.startswith("#")):
        return [Edit(whole, "pass")]
    return [Edit(Span(Location(whole.start.row, 1), Location(whole.end.row + 1, 1)), "")]
