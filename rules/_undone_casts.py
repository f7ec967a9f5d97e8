"""Casts under a kept answer that are undone under the same answer: a wrong answer costs no more than the casts.

``cast = not torch.is_autocast_enabled()``, then ``if cast:`` keep a dtype and cast the input, and ``if cast:`` cast the
result back. Autocast casts for the operations between them either way.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._surroundings import FunctionNode, Surroundings


def decides_nothing(answer: ast.expr, around: Surroundings) -> bool:
    """Whether a variable keeps an answer that tests alone read: the first guards casts, and the others cast back.

    Not where what was cast is returned, or lends its dtype to something else.
    """
    function, kept = around.function(answer), _variable(answer, around)
    if function is None or kept is None:
        return False
    nodes = list(ast.walk(function))
    reads = [node for node in nodes if _is_named(node, kept) and isinstance(node.ctx, ast.Load)]
    tests = [node for node in nodes if isinstance(node, ast.If) and node.test in reads and not node.orelse]
    if len(reads) != len(tests) or len(tests) < 2:
        return False
    first, *others = sorted(tests, key=lambda test: test.lineno)
    there, back = list(_assignments(first)), [pair for test in others for pair in _assignments(test)]
    if None in there or not all(pair is not None and _is_cast(pair[1]) for pair in back):
        return False
    pairs = [pair for pair in there if pair is not None and not _is_dtype(pair[1])]
    cast = {name for name, value in pairs if not _joins_at_once(function, first, name, value)}
    return cast.isdisjoint(_deciding(function, [*tests, around.statement(answer)[0]]))


def _joins_at_once(function: FunctionNode, test: ast.If, name: str, value: ast.expr) -> bool:
    """Whether what was cast to a parameter's dtype is replaced next by what a call makes of it and that parameter.

    ``y = cast(y, scale.dtype)``, then ``y = rotate(scale, y)``: promotion gives that dtype without the cast.
    """
    lenders = {ast.unparse(node.value) for node in ast.walk(value) if _is_dtype(node)}
    after = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and node.lineno > (test.end_lineno or test.lineno)
        and any(_is_named(read, name) for read in ast.walk(node))
    ]
    taken = min(after, key=lambda statement: statement.lineno, default=None)
    if taken is None or not isinstance(taken.value, ast.Call) or not _is_named(taken.targets[0], name):
        return False
    return any(ast.unparse(argument) in lenders for argument in taken.value.args)


def _variable(answer: ast.expr, around: Surroundings) -> str | None:
    """The one variable that an answer is kept in."""
    statement, _ = around.statement(answer)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else None


def _is_named(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name


def _assignments(test: ast.If) -> Iterator[tuple[str, ast.expr] | None]:
    """(variable, value) of each statement below a test, None for one that does something else."""
    for statement in test.body:
        if isinstance(statement, ast.If) and not statement.orelse:
            yield from _assignments(statement)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id, statement.value
        else:
            yield None


def _is_dtype(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "dtype"


def _is_cast(value: ast.expr) -> bool:
    """``y.to(dtype)`` with a variable that keeps a dtype."""
    is_to = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to"
    return is_to and any(isinstance(given, ast.Name) for given in getattr(value, "args", ()))


def _deciding(function: FunctionNode, apart: list[ast.stmt | None]) -> Iterator[str]:
    """Variables whose dtype outlives the casts: returned, or asked for their dtype, apart from some statements."""
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if node in apart:
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            yield from (part.id for part in parts if isinstance(part, ast.Name))
        if _is_dtype(node) and isinstance(node.value, ast.Name):
            yield node.value.id
        pending.extend(ast.iter_child_nodes(node))
