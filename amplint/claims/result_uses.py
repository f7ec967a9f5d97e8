"""What a function does with the result of an operation, or with the variable that keeps it."""

from __future__ import annotations

import ast
from bisect import bisect_right
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.claims.surroundings import FunctionNode, Surroundings

_VIEWS = frozenset(
    (
        *("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute", "contiguous"),
        *("t", "expand", "detach", "clone", "chunk", "narrow"),
    )
)


def uses(around: Surroundings, function: FunctionNode, node: ast.expr) -> Iterator[ast.expr]:
    """Where the result is used: the operation itself, or the variable that keeps it."""
    node = viewed(around, node)
    statement = around.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        yield node
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return
    named = [n for n in nodes_of_kind(function, ast.Name) if n.id == target.id and n is not target]
    after = [n for n in named if n.lineno > (statement.end_lineno or statement.lineno)]
    again = min((n.lineno for n in after if not isinstance(n.ctx, ast.Load)), default=None)
    for name in after:
        if isinstance(name.ctx, ast.Load) and (again is None or name.lineno <= again):
            yield viewed(around, name)


def is_only_compared(around: Surroundings, function: FunctionNode, node: ast.expr) -> bool:
    """Whether nothing but comparisons use the result: it has no gradient, and no dtype follows from it."""
    found = list(uses(around, function, node))
    return bool(found) and all(isinstance(around.parent(use), ast.Compare) for use in found)


def viewed(around: Surroundings, node: ast.expr) -> ast.expr:
    """A tensor with the views that are taken of it on the spot."""
    while True:
        parent = around.parent(node)
        if isinstance(parent, ast.Subscript) and parent.value is node:
            node = parent
            continue
        call = around.parent(parent) if isinstance(parent, ast.Attribute) and parent.attr in _VIEWS else None
        if not isinstance(call, ast.Call) or call.func is not parent:
            return node
        node = call


def uses_behind(function: ast.AST, name: str, behind: ast.expr) -> Iterator[ast.Name]:
    """Where a variable is read behind an expression, until it is bound anew."""
    found = _uses_of(function).get(name, ())
    end = (behind.end_lineno or behind.lineno, behind.end_col_offset or 0)
    rebound: int | None = None
    for use in found[bisect_right(found, end, key=_place) :]:
        if rebound is not None and use.lineno > rebound:
            return
        if isinstance(use.ctx, ast.Load):
            yield use
        elif isinstance(use.ctx, ast.Store) and rebound is None:
            rebound = use.lineno


def computed_from(function: ast.AST, node: ast.AST) -> Callable[[ast.AST], bool]:
    """Tells of a tree of a function whether an expression, or a variable that is computed from it, stands there."""
    reached: set[str] = set()

    def holds(tree: ast.AST) -> bool:
        return any(n is node or (isinstance(n, ast.Name) and n.id in reached) for n in ast.walk(tree))

    for statement in nodes_of_kind(function, ast.Assign, ast.AnnAssign, ast.AugAssign):
        if statement.value is not None and holds(statement.value):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            reached |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)} - {"self"}
    return holds


@once_for_each_node
def _uses_of(function: ast.AST) -> dict[str, list[ast.Name]]:
    """Where variables stand in a function, in the order of the source."""
    found: dict[str, list[ast.Name]] = {}
    for node in nodes_of_kind(function, ast.Name):
        found.setdefault(node.id, []).append(node)
    for uses in found.values():
        uses.sort(key=_place)
    return found


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
