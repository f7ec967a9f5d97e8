"""Tensors that hold complex numbers as pairs: what a transform gave is float32, whatever a model's parameters are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings


def are_parts(around: Surroundings, real: ast.expr | None, imaginary: ast.expr | None) -> bool:
    """Whether two tensors are the first and the second of the pairs of one: ``x[..., 0]`` and ``x[..., 1]``."""
    if real is None or imaginary is None:
        return False
    return any(_are_pair(first, second) for first in _taken(around, real) for second in _taken(around, imaginary))


def is_modulus(around: Surroundings, node: ast.expr | None) -> bool:
    """Whether squares of such parts are added: ``re ** 2 + im ** 2``."""
    return node is not None and any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Add)
        and are_parts(around, _squared(part.left), _squared(part.right))
        for part in ast.walk(node)
    )


def _squared(node: ast.expr) -> ast.expr | None:
    square = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    return node.left if isinstance(node, ast.BinOp) and square else None


def _taken(around: Surroundings, node: ast.expr) -> Iterator[ast.Subscript]:
    """The subscript that an expression is, or that the function assigns to the variable."""
    if isinstance(node, ast.Subscript):
        yield node
    function = around.function(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name):
        return
    for statement in ast.walk(function):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Subscript)
            and any(isinstance(target, ast.Name) and target.id == node.id for target in statement.targets)
        ):
            yield statement.value


def _are_pair(real: ast.Subscript, imaginary: ast.Subscript) -> bool:
    if ast.unparse(real.value) != ast.unparse(imaginary.value):
        return False
    firsts, seconds = _indices(real), _indices(imaginary)
    if len(firsts) != len(seconds):
        return False
    differing = [(a, b) for a, b in zip(firsts, seconds, strict=True) if ast.unparse(a) != ast.unparse(b)]
    return [tuple(map(ast.unparse, pair)) for pair in differing] == [("0", "1")]


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
