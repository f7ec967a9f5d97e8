"""Whether a number is what tensors are divided by after its root was taken: a norm, a standard deviation."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import uses_behind

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_ROOTS = frozenset(("sqrt", "sqrt_", "rsqrt", "rsqrt_"))
_GUARDS = frozenset(("add", "add_", "clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "maximum"))
_POWERS = frozenset(("pow", "pow_"))
_EXPONENTS = (0.5, -0.5)
_MAX_VARIABLES = 3


def is_rooted(surroundings: Surroundings, node: ast.expr, bare: bool = False) -> bool:
    """Whether the root of a tensor is taken, in the function that the expression stands in.

    Followed through sums, products, reshaping and a few variables, not into other functions. ``bare``: nothing is added
    and no limit set before the root is taken, so that the root of zero is zero, whatever is added to it.
    """
    pending = [node]
    for _ in range(_MAX_VARIABLES):
        following: list[ast.expr] = []
        for each in pending:
            if bare and _is_guarded(surroundings, each):
                continue
            if _root_follows(surroundings, each):
                return True
            name, function = _bound(surroundings, each), surroundings.function(each)
            if name is not None and function is not None:
                following += uses_behind(function, name, each)
        pending = following
    return False


def _root_follows(surroundings: Surroundings, node: ast.expr) -> bool:
    current: ast.AST = node
    for ancestor in surroundings.ancestors(node):
        if _takes_root(surroundings, ancestor, current):
            return True
        if isinstance(ancestor, ast.BinOp):
            if isinstance(ancestor.op, ast.Pow) and ancestor.left is current:
                return False
        elif not isinstance(ancestor, ast.Call | ast.Attribute | ast.Subscript | ast.keyword):
            return False
        current = ancestor
    return False


def _takes_root(surroundings: Surroundings, node: ast.AST, operand: ast.AST) -> bool:
    """Whether an expression is the root of the one in it."""
    if isinstance(node, ast.Call):
        name = surroundings.called(node)
        return name in _ROOTS or (name in _POWERS and any(_is_root(part) for part in node.args))
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
        return False
    return node.left is operand and _is_root(node.right)


def _is_guarded(surroundings: Surroundings, node: ast.expr) -> bool:
    """Whether something is added to a number in its statement, or a limit is set to it, before its root is taken."""
    current: ast.AST = node
    for ancestor in surroundings.ancestors(node):
        if isinstance(ancestor, ast.stmt) or _takes_root(surroundings, ancestor, current):
            return False
        current = ancestor
        if isinstance(ancestor, ast.BinOp) and isinstance(ancestor.op, ast.Add | ast.Sub):
            return True
        if isinstance(ancestor, ast.Call) and surroundings.called(ancestor) in _GUARDS:
            return True
    return False


def _is_root(node: ast.expr) -> bool:
    try:
        return ast.literal_eval(node) in _EXPONENTS
    except (ValueError, TypeError):
        return isinstance(node, ast.BinOp) and ast.unparse(node) in ("1 / 2", "-1 / 2", "1.0 / 2", "-1.0 / 2")


def _bound(surroundings: Surroundings, node: ast.expr) -> str | None:
    """The variable that an expression, or what is computed from it, is assigned to."""
    for ancestor in surroundings.ancestors(node):
        if isinstance(ancestor, ast.Assign | ast.AnnAssign | ast.AugAssign):
            target = ancestor.targets[0] if isinstance(ancestor, ast.Assign) else ancestor.target
            return target.id if isinstance(target, ast.Name) else None
        if isinstance(ancestor, ast.stmt):
            return None
    return None
