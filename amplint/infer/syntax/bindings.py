"""What the statements of a module bind, and where: names with the statement, or the part of an import, that does."""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Binding = ast.stmt | ast.alias


def star_imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Each ``from … import *`` at the top level of a module, but from further up than its own package."""
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*" and statement.level <= 1:
            yield statement


def module_bindings(body: list[ast.stmt]) -> Iterator[tuple[str, Binding]]:
    """Every module-level binding, in order, with compound statements opened."""
    opened = [iter(body)]
    while opened:
        statement = next(opened[-1], None)
        if statement is None:
            opened.pop()
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
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
        else:
            opened.append(_inside(statement))


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of a compound one that a module's names may be bound in."""
    if isinstance(statement, ast.If):
        return chain(statement.body, statement.orelse)
    if isinstance(statement, ast.Try):
        handled = chain.from_iterable(handler.body for handler in statement.handlers)
        return chain(statement.body, handled, statement.orelse, statement.finalbody)
    return iter(statement.body) if isinstance(statement, (ast.With, ast.For, ast.While)) else iter(())


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


def package_of(alias: ast.alias, statement: ast.Import | ast.ImportFrom) -> str:
    """The package that an import takes something from; empty for a relative one."""
    module = alias.name if isinstance(statement, ast.Import) else "" if statement.level else statement.module or ""
    return module.partition(".")[0]


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(element.value if isinstance(element, ast.Starred) else element)
