"""Lines that a constant of the file leaves out: nothing runs them before somebody edits it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANY = frozenset(("globals", "vars", "exec", "setattr", "*"))
"""What may bind a name of the module without naming it: functions, and an import of all names."""


class LeftOut(NamedTuple):
    """Lines, and the constants whose values leave them out."""

    first: int
    last: int
    constants: frozenset[str]


@once_for_each_node
def left_out(tree: ast.Module) -> tuple[LeftOut, ...]:
    """What stands below tests that never hold: of names that the top level of the file binds to ``True`` or ``False``,
    and that nothing else in the file binds, or that a function so binds to one of these or ``None``."""
    tests = [node for node in nodes_below(tree) if isinstance(node, ast.If)]
    if not tests:
        return ()
    known = constants(tree)
    found = [each for node in tests for each in _left_out(node, known)] if known else []
    for function in nodes_below(tree):
        own = _own_constants(function) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else {}
        below = [node for node in nodes_below(function) if isinstance(node, ast.If)] if own else ()
        found += [each._replace(constants=frozenset()) for node in below for each in _left_out(node, own)]
    return tuple(found)


def _own_constants(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, bool]:
    """The names that a function binds to a constant, in one place, and that nothing else in it binds."""
    found = _bound_to_constants(function.body, (bool, type(None)))
    bound = list(_bound(function)) if found else []
    return {name: value for name, value in found.items() if bound.count(name) == 1}


def _left_out(node: ast.If, constants: dict[str, bool]) -> Iterator[LeftOut]:
    answer = _answer(node.test, constants)
    block = [] if answer is None else node.orelse if answer else node.body
    if block:
        names = {part.id for part in nodes_below(node.test) if isinstance(part, ast.Name)} & constants.keys()
        yield LeftOut(block[0].lineno, block[-1].end_lineno or block[-1].lineno, frozenset(names))


def _answer(test: ast.expr, constants: dict[str, bool]) -> bool | None:
    """What a test says; None where that is not decided by constants."""
    if isinstance(test, ast.Name):
        return constants.get(test.id)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        answer = _answer(test.operand, constants)
        return None if answer is None else not answer
    if isinstance(test, ast.BoolOp):
        decides = isinstance(test.op, ast.Or)
        answers = [_answer(value, constants) for value in test.values]
        return decides if decides in answers else None if None in answers else not decides
    return None


def constants(tree: ast.Module) -> dict[str, bool]:
    """The names that the top level of a file binds to ``True`` or ``False``, and that nothing else in it binds."""
    found = _bound_to_constants(tree.body, (bool,))
    if not found:
        return {}
    bound = list(_bound(tree))
    if _ANY.intersection(bound):
        return {}
    return {name: value for name, value in found.items() if bound.count(name) == 1}


def _bound_to_constants(body: list[ast.stmt], kinds: tuple[type, ...]) -> dict[str, bool]:
    return {
        target.id: bool(statement.value.value)
        for statement in body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, kinds)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _bound(tree: ast.AST) -> Iterator[str]:
    """Every name that is bound anywhere in a file or function, once for each place, and what may bind names by text."""
    for node in nodes_below(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) or node.id in _ANY:
                yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)):
            yield node.name or ""
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or ""
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
            yield node.name or ""
