"""Lines that a constant of the file leaves out: nothing runs them before somebody edits it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Iterator

_BY_TEXT = frozenset(("globals", "vars", "exec", "setattr"))
"""What may set a name of the module without naming it."""


@once_for_each_node
def switched_off(tree: ast.Module) -> tuple[tuple[int, int], ...]:
    """First and last lines of what stands below tests that never hold: of a name that the top level of the file binds
    to ``True`` or ``False``, and that nothing else in the file binds."""
    tests = [node for node in nodes_below(tree) if isinstance(node, ast.If)]
    if not tests:
        return ()
    constants = _constants(tree)
    left_out = (part for node in tests for part in _left_out(node, constants)) if constants else ()
    return tuple((part[0].lineno, part[-1].end_lineno or part[-1].lineno) for part in left_out if part)


def _left_out(node: ast.If, constants: dict[str, bool]) -> Iterator[list[ast.stmt]]:
    answer = _answer(node.test, constants)
    if answer is not None:
        yield node.orelse if answer else node.body


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


def _constants(tree: ast.Module) -> dict[str, bool]:
    found = {
        target.id: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, bool)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    if not found:
        return {}
    bound = list(_bound(tree))
    if _BY_TEXT.intersection(bound):
        return {}
    return {name: value for name, value in found.items() if bound.count(name) == 1}


def _bound(tree: ast.Module) -> Iterator[str]:
    """Every name that is bound anywhere in a file, once for each place, and what may bind names by text."""
    for node in nodes_below(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) or node.id in _BY_TEXT:
                yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
            yield node.name or ""
