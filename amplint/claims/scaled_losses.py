"""Losses whose number is read while they are multiplied by the loss scale: ``loss = scaler.scale(loss)``, then
``total += loss.item()``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.claims.misused_scalers import scaling
from amplint.claims.surroundings import FunctionNode
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Scope
    from amplint.infer.state.facts import FileFacts

_NUMBER = frozenset(("item", "tolist", "detach", "cpu", "numpy", "data"))
"""Methods and attributes of a tensor by which code takes its number away from the graph."""
_ASKING = frozenset(("isnan", "isfinite", "isinf", "grad", "is_tensor", "isinstance", "type", "len"))
"""Functions that find, or give, the same for a loss that is scaled."""


_SAME = frozenset(("mean", "sum", "float"))
"""Methods of a loss that give one again."""


class ScaledRead(NamedTuple):
    """Where the number of a scaled loss is read, and the call that scaled it."""

    node: ast.expr
    scaling: ast.Call


def scaled_reads(facts: FileFacts, around: Surroundings) -> Iterator[ScaledRead]:
    """The first such read behind each assignment of a scaled loss to a variable, in functions that never ask for the
    scale, by which they may divide.

    A loss that is returned, added up or kept is read where the backward pass is over.
    """
    for scope in facts.training.program.scopes:
        for target, value in scope.assignments:
            if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
                continue
            if scaling(value, scope, facts) is None or _asks_for_scale(scope):
                continue
            statement, _ = around.statement(value)
            behind = _behind(statement, target.id, around) if statement is not None else ()
            read = next(_reads(target.id, behind, around), None)
            if read is not None:
                yield ScaledRead(read, value)


def _asks_for_scale(scope: Scope) -> bool:
    asked = (node.attr for node in nodes_below(scope.node) if isinstance(node, ast.Attribute))
    return any(name in ("get_scale", "_scale") for name in asked)


def _behind(statement: ast.stmt, name: str, around: Surroundings) -> Iterator[ast.stmt]:
    """The statements that run behind one in its function, in their order, up to what may give a variable a value that
    is not made of its own."""
    for outer in (statement, *around.ancestors(statement)):
        if isinstance(outer, FunctionNode):
            return
        for following in around.following(outer) if isinstance(outer, ast.stmt) else ():
            stores = [node for node in _mentions(following, name) if not isinstance(node.ctx, ast.Load)]
            if not all(_is_made_of_itself(store, around) for store in stores):
                return
            yield following


def _mentions(statement: ast.stmt, name: str) -> list[ast.Name]:
    found = [node for node in nodes_below(statement) if isinstance(node, ast.Name) and node.id == name]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _is_made_of_itself(store: ast.Name, around: Surroundings) -> bool:
    given = around.parent(store)
    if isinstance(given, ast.AugAssign):
        return True
    return isinstance(given, ast.Assign) and bool(_mentions(given, store.id)[len(given.targets) :])


def _reads(name: str, statements: Iterable[ast.stmt], around: Surroundings) -> Iterator[ast.expr]:
    ran_back = False
    for statement in statements:
        for mention in _mentions(statement, name):
            if not isinstance(mention.ctx, ast.Load) or around.function(mention) is not around.function(statement):
                continue
            whole, asked = _chain(mention, around)
            ran_back = ran_back or "backward" in asked
            if "backward" not in asked and _is_read(whole, asked, ran_back, around):
                yield whole


def _chain(node: ast.expr, around: Surroundings) -> tuple[ast.expr, frozenset[str]]:
    """The attributes asked of a value and of what they give, called or not, and the whole expression."""
    asked = set[str]()
    while True:
        parent = around.parent(node)
        if isinstance(parent, ast.Attribute):
            asked.add(parent.attr)
        elif not (isinstance(parent, ast.Call) and parent.func is node):
            return node, frozenset(asked)
        node = parent


def _is_read(whole: ast.expr, asked: frozenset[str], ran_back: bool, around: Surroundings) -> bool:
    parent = around.parent(whole)
    called = around.called(parent) if isinstance(parent, ast.Call) else ""
    if (
        called in _ASKING
        or asked & _ASKING
        or isinstance(parent, (ast.Compare, ast.If, ast.While, ast.BoolOp, ast.UnaryOp, ast.Expr))
    ):
        return False
    if asked & _NUMBER or called in ("float", "format") or isinstance(parent, ast.FormattedValue):
        return True
    if isinstance(parent, ast.Tuple):
        parent = around.parent(parent)
        kept = isinstance(parent, (ast.Return, ast.BinOp))
    else:
        kept = isinstance(parent, (ast.Return, ast.AugAssign, ast.Dict, ast.Call))
    return ran_back and kept and asked <= _SAME
