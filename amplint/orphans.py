"""Imports that a fix leaves without a use, and the edits that take them out."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_Statement = ast.Import | ast.ImportFrom


def without_orphans(source: Source, edits: Sequence[Edit]) -> list[Edit]:
    """Edits that take out each import of torch whose every use lies in what ``edits`` replace, and comes nowhere back.

    Names that others may read out of the file stay (:func:`is_exported`), and so does what had no use before.
    """
    replaced = [edit.span for edit in edits if edit.span.start != edit.span.end]
    inside: set[str] = set()
    outside: set[str] = set()
    for node in ast.walk(source.tree) if replaced else ():
        if isinstance(node, ast.Name):
            span = source.span(node)
            (inside if any(place.contains(span) for place in replaced) else outside).add(node.id)
    gone = inside - outside
    gone -= {name for name in gone for edit in edits if re.search(rf"(?<![\w.]){re.escape(name)}\b", edit.content)}
    imports: dict[str, list[tuple[ast.AST, _Statement, ast.alias]]] = {}
    for parent, statement, alias in _imports(source.tree) if gone else ():
        imports.setdefault(alias.asname or alias.name.partition(".")[0], []).append((parent, statement, alias))
    return [
        _removal(source, parent, statement, alias)
        for name, found in imports.items()
        if name in gone and all(_of_torch(*entry[1:]) for entry in found) and not is_exported(source, name)
        for parent, statement, alias in found
    ]


def is_exported(source: Source, local: str) -> bool:
    """Whether others may read a name out of a file: a package's ``__init__``, ``__all__``, a quoted annotation."""
    if source.path.name == "__init__.py":
        return True
    word = re.compile(rf"\b{re.escape(local)}\b")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and node.value == local:
            return True
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if isinstance(annotation, ast.expr):
            for part in ast.walk(annotation):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and word.search(part.value):
                    return True
    return False


def _imports(tree: ast.Module) -> Iterator[tuple[ast.AST, _Statement, ast.alias]]:
    """Every imported name, with its statement and what that stands in."""
    for parent in ast.walk(tree):
        for statement in ast.iter_child_nodes(parent):
            if isinstance(statement, _Statement):
                for alias in statement.names:
                    yield parent, statement, alias


def _of_torch(statement: _Statement, alias: ast.alias) -> bool:
    module = alias.name if isinstance(statement, ast.Import) else "" if statement.level else statement.module or ""
    return module.partition(".")[0] == "torch"


def _removal(source: Source, parent: ast.AST, statement: _Statement, alias: ast.alias) -> Edit:
    """Take an imported name out of its statement; the whole statement where it is the only one."""
    span, whole = source.span(alias), source.span(statement)
    index = statement.names.index(alias)
    if len(statement.names) > 1:
        if index + 1 < len(statement.names):
            return Edit(Span(span.start, source.span(statement.names[index + 1]).start), "")
        return Edit(Span(source.span(statement.names[index - 1]).end, span.end), "")
    before = source.line(whole.start.row)[: whole.start.column - 1]
    after = source.line(whole.end.row)[whole.end.column - 1 :].strip()
    blocks = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    alone = not isinstance(parent, ast.Module) and [statement] in blocks
    if before.strip() or alone or (after and not after.startswith("#")):
        return Edit(whole, "pass")
    return Edit(Span(Location(whole.start.row, 1), Location(whole.end.row + 1, 1)), "")
