"""Constants whose values every floating dtype holds, and whose dtype nothing but one operation sees."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.torch_ops import LOWER, find_op

from ._surroundings import Surroundings

if TYPE_CHECKING:
    from amplint.infer.facts import Conflict, MadeOperand
    from amplint.visit import Visit

EXACT = frozenset(f"torch.{name}() without dtype" for name in ("zeros", "ones", "eye"))
"""What makes only values that every floating dtype holds."""
_VIEWS = frozenset(("expand", "view", "reshape", "repeat", "unsqueeze", "squeeze", "t", "transpose", "permute", "to"))


def is_exact(visit: Visit, conflict: Conflict, made: MadeOperand) -> bool:
    """Whether the constant's values are exact in every dtype, and no other use or cast sees its dtype."""
    op = find_op(conflict.op)
    if made.maker.what not in EXACT or made.operand.value.origin is not made.maker or op is None:
        return False
    if not set(op.policy.values()) <= {LOWER}:
        return False
    maker, node = made.maker.node, made.operand.node
    if not isinstance(maker, ast.Call) or any(keyword.arg in (None, "requires_grad") for keyword in maker.keywords):
        return False
    return node is not None and (_is_view_of(node, maker) or _only_use(visit, node, maker))


def _only_use(visit: Visit, node: ast.expr, maker: ast.Call) -> bool:
    """Whether an operand is a variable that holds a constant, and is read and written nowhere else."""
    function = Surroundings.of(visit.facts.source.tree).function(node)
    root = node
    while not isinstance(root, ast.Name):
        inner = _viewed(root)
        if inner is None:
            return False
        root = inner
    if function is None or function is not Surroundings.of(visit.facts.source.tree).function(maker):
        return False
    uses = [name for name in names_in(function) if name.id == root.id]
    assigned = [
        statement
        for statement in ast.walk(function)
        if isinstance(statement, ast.Assign) and _is_view_of(statement.value, maker)
    ]
    return len(uses) == 2 and len(assigned) == 1 and assigned[0].targets[0] in uses


def _is_view_of(node: ast.expr, maker: ast.Call) -> bool:
    while node is not maker:
        inner = _viewed(node)
        if inner is None:
            return False
        node = inner
    return True


def _viewed(node: ast.expr) -> ast.expr | None:
    """What a method or index hands on with its values as they are."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
        return node.func.value
    return node.value if isinstance(node, ast.Subscript) else None


def names_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Name]:
    """Every name that is read or bound below a function."""
    return [node for node in ast.walk(function) if isinstance(node, ast.Name)]
