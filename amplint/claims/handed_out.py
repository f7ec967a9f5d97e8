"""What a function hands out of what one of its operations gives."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.operands import CASTS
from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.torch_model.torch_ops import find_op

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_FOLLOWING = frozenset(("first", "self", "promote", "widest", "float", "sum", "int", "real"))
"""Result rules of the table of operations by which floating tensors give one of their dtype."""


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
        target = target.elts[0]
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
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _follows(node.func.attr):
        parts = [node.func.value, *node.args]
    return node is call or any(_carries(part, call, held) for part in parts)


def _follows(method: str) -> bool:
    """Whether a method gives a floating tensor, or values beside indices, in the dtype of its own."""
    op = find_op(f"torch.Tensor.{method}")
    if op is None or op.strict or method in CASTS:
        return False
    return (op.result[0] if isinstance(op.result, tuple) else op.result) in _FOLLOWING
