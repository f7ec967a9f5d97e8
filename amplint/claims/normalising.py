"""Whether a mean of squares scales the very tensor that was squared, as hand-written normalisation layers do."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import computed_from

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_ROOTS = ("sqrt", "sqrt_", "rsqrt", "rsqrt_")


def squared(surroundings: Surroundings, node: ast.expr | None) -> tuple[ast.expr, ...]:
    """What an expression squares, as often as it stands there; nothing where that is elsewhere."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right) if isinstance(node.op, ast.Mult) else (node.left,)
    if isinstance(node, ast.Call) and surroundings.called(node) in ("pow", "square"):
        of = surroundings.subject(node)
        return (of,) if of is not None else ()
    return ()


def normalises(surroundings: Surroundings, mean: ast.AST, squares: ast.expr | None) -> bool:
    """Whether the function takes a root of the mean, and divides or multiplies by it what it squared."""
    function = surroundings.function(mean)
    if function is None:
        return False
    squares = surroundings.only_value(squares) if isinstance(squares, ast.Name) else squares
    scaled = {n.id for part in squared(surroundings, squares) for n in ast.walk(part) if isinstance(n, ast.Name)}
    holds, nodes = computed_from(function, mean), list(ast.walk(function))

    def mentions(tree: ast.AST) -> bool:
        return any(isinstance(n, ast.Name) and n.id in scaled - {"self"} for n in ast.walk(tree))

    return any(_is_root(surroundings, n) and holds(n) for n in nodes) and any(
        isinstance(n, ast.BinOp)
        and isinstance(n.op, ast.Mult | ast.Div)
        and ((holds(n.right) and mentions(n.left)) or (holds(n.left) and mentions(n.right)))
        for n in nodes
    )


def _is_root(surroundings: Surroundings, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = surroundings.called(node)
        given = (*node.args, *(keyword.value for keyword in node.keywords))
        return name in _ROOTS or (name == "pow" and any(map(_is_half, given)))
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_half(node.right)


def _is_half(node: ast.expr) -> bool:
    """Whether an expression is a half or minus a half: ``0.5``, ``-(1 / 2)``."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=value):
            return _is_half(value)
        case ast.BinOp(op=ast.Div(), left=ast.UnaryOp(op=ast.USub(), operand=left), right=right):
            return _is_half(ast.BinOp(left, ast.Div(), right))
        case ast.BinOp(op=ast.Div(), left=ast.Constant(value=int() | float() as a), right=ast.Constant(value=b)):
            return isinstance(b, int | float) and 2 * a == b
    return isinstance(node, ast.Constant) and node.value == 0.5
