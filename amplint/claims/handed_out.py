"""What a function hands out of what one of its operations gives."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.operands import VIEWS
from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_FLOATING = VIEWS | {
    *("sum", "mean", "prod", "cumsum", "cumprod", "clamp", "clip", "exp", "log", "sqrt", "rsqrt", "pow", "square"),
    *("softmax", "log_softmax", "sigmoid", "tanh", "masked_fill", "div", "mul", "add", "sub", "neg", "abs", "norm"),
}
"""Functions and methods that give one floating tensor of a floating one, in its dtype."""
_WITH_INDICES = frozenset(("topk", "sort", "max", "min", "kthvalue", "median", "mode"))
"""Functions and methods that give values, in the dtype of their tensor, and indices."""


@dataclass(frozen=True, slots=True)
class HandedOut:
    """What a function returns that has the dtype of an operation's result; ``bound``: the variables that it sets."""

    values: tuple[ast.expr, ...]
    bound: frozenset[str]


def handed_out(call: ast.expr, around: Surroundings) -> HandedOut | None:
    """What becomes of a call's result at the returns of its function; None where it is returned as it is, or not.

    Only elementwise operations, reductions and views count: an operation that wants one dtype is judged by itself.
    """
    function, (statement, _) = around.function(call), around.statement(call)
    if function is None or not isinstance(statement, ast.Assign):
        return None
    held: set[str] = set()
    assignments = nodes_of_kind(function, ast.Assign, ast.AugAssign, ast.AnnAssign)
    while True:
        before = len(held)
        for node in assignments:
            if node.value is not None and _carries(node.value, call, held):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                held.update(name for target in targets if (name := _holder(target, node.value)) is not None)
        if len(held) == before:
            break
    returned = [value for node in nodes_of_kind(function, ast.Return) for value in _items(node.value)]
    values = tuple(value for value in returned if _carries(value, call, held))
    own = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if all(isinstance(value, ast.Name) and value.id in own for value in values):
        return None
    bound = frozenset(name.id for name in nodes_of_kind(function, ast.Name) if isinstance(name.ctx, ast.Store))
    return HandedOut(values, bound)


def _items(value: ast.expr | None) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []


def _holder(target: ast.expr, value: ast.expr) -> str | None:
    """The variable that holds a value, or the values of ``values, indices = x.topk(2)``."""
    if isinstance(target, ast.Tuple) and target.elts and isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        target = target.elts[0] if name in _WITH_INDICES else target
    return target.id if isinstance(target, ast.Name) else None


def _carries(node: ast.expr, call: ast.expr, held: set[str]) -> bool:
    """Whether an expression is sure to have the result's dtype."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.Name):
        return node.id in held
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        parts = [node.operand]
    elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in ("T", "mT")):
        parts = [node.value]
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Attribute) and name in _FLOATING | _WITH_INDICES:
            parts = [node.func.value, *node.args]
    return node is call or any(_carries(part, call, held) for part in parts)
