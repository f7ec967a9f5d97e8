"""What the statements of a module bind, and where: names with the statement, or the part of an import, that does."""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

from amplint.compiling import ordinary
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.packages import package_of
from amplint.infer.syntax.raising import for_old_releases

if TYPE_CHECKING:
    from collections.abc import Iterator

Binding = ast.stmt | ast.alias


def star_imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Each ``from … import *`` at the top level of a module."""
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
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
        elif isinstance(statement, ast.Try) and _replaces_what_torch_lacked(statement):
            first = list(module_bindings(statement.body))
            yield from first
            names = {name for name, _ in first}
            handled = chain.from_iterable(handler.body for handler in statement.handlers)
            yield from ((name, found) for name, found in module_bindings([*handled]) if name not in names)
            opened.append(chain(statement.orelse, statement.finalbody))
        else:
            opened.append(_inside(statement))


def paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is assigned to what: one after another where as many are unpacked, ``a, b = c, d``."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of a compound one that a module's names may be bound in."""
    if isinstance(statement, ast.If):
        return chain(statement.body, statement.orelse)
    if isinstance(statement, ast.Try):
        handled = chain.from_iterable(handler.body for handler in statement.handlers)
        return chain(statement.body, handled, statement.orelse, statement.finalbody)
    return iter(statement.body) if isinstance(statement, (ast.With, ast.For, ast.While)) else iter(())


def _replaces_what_torch_lacked(statement: ast.Try) -> bool:
    """Whether handlers only bind what older releases lack: no import of another package can have failed."""
    imports = [s for part in statement.body for s in nodes_below(part) if isinstance(s, (ast.Import, ast.ImportFrom))]
    packages = {package_of(alias, found) for found in imports for alias in found.names}
    return bool(statement.handlers) and packages <= {"torch"} and all(map(for_old_releases, statement.handlers))


@ordinary
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
