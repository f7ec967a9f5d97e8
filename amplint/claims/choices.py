"""Whether shares choose and weigh what they chose, as a router's choose experts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import computed_from, uses
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_CHOOSERS = ("topk", "argmax")


def decides(surroundings: Surroundings, node: ast.AST) -> bool:
    """Whether the largest of a tensor are asked for, and something is multiplied or divided by them."""
    function = surroundings.function(node)
    if function is None or not isinstance(node, ast.expr):
        return False
    for use in uses(surroundings, function, node):
        parent = surroundings.parent(use)
        call = surroundings.parent(parent) if isinstance(parent, ast.Attribute) else parent
        if isinstance(call, ast.Call) and surroundings.called(call) in _CHOOSERS:
            holds = computed_from(function, call)
            scales = nodes_of_kind(function, ast.BinOp, ast.AugAssign)
            if any(isinstance(scale.op, ast.Mult | ast.Div) and holds(scale) for scale in scales):
                return True
    return False
