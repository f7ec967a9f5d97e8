"""Arithmetic in a region without autocast of which the code casts one side to float32, and computes the other as is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.operands import VIEWS
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict
    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import FileFacts

_CASTS = frozenset(("float", "double", "half", "bfloat16", "to", "type", "type_as", "cuda", "cpu"))
_SCOPES = (ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef)


def left_behind(facts: FileFacts, conflict: Conflict, surroundings: Surroundings) -> tuple[ast.expr, str] | None:
    """The tensor that is not cast, and the name of what is computed of it in low precision.

    None where nothing is: multiplying a float32 tensor with it then loses nothing, as torch promotes it first.
    """
    node = conflict.right.node
    if isinstance(node, ast.Name):
        node = _assigned(node, conflict, surroundings)
    operation = ""
    while isinstance(node, ast.Call | ast.Subscript):
        if isinstance(node, ast.Subscript):
            node = node.value
            continue
        called, function = surroundings.called(node), surroundings.torch_name(node.func)
        if called in _CASTS or not (function or isinstance(node.func, ast.Attribute)):
            return None
        if called not in VIEWS:
            operation = called
        of = surroundings.subject(node)
        if of is None:
            return None
        node = of
    return (node, operation) if operation and isinstance(node, ast.Name | ast.Attribute) else None


def _assigned(name: ast.Name, conflict: Conflict, surroundings: Surroundings) -> ast.expr | None:
    """What a variable was last assigned in the region before the operation."""
    scope = next((a for a in surroundings.ancestors(conflict.node) if isinstance(a, _SCOPES)), None)
    before = [
        node
        for node in (nodes_of_kind(scope, ast.Assign) if scope is not None else ())
        if node.lineno < conflict.node.lineno
        and any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
    ]
    return max(before, key=lambda node: node.lineno).value if before else None


def message(facts: FileFacts, conflict: Conflict, tensor: ast.expr, operation: str) -> str:
    """Which side was forgotten, and what that costs."""
    dtype = conflict.right_dtype if conflict.right_dtype != "float32" else "low precision"
    cast = ast.unparse(conflict.left.node) if conflict.left.node is not None else "the other side"
    beside = f"`{cast}`" if len(cast) <= 40 else "the other side"
    return (
        f"`{operation}` of `{ast.unparse(tensor)}` computes in {dtype} where autocast is off; "
        f"only {beside} is cast to float32"
    )
