"""From what the facts name to its libcst node."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    import libcst as cst

    from amplint.infer.lattice.values import Origin
    from amplint.infer.state.operand import Operand
    from amplint.visit import Visit


def find_operand(visit: Visit, node: cst.CSTNode, operand: Operand) -> cst.BaseExpression | None:
    """The libcst expression below ``node`` that gave an operand."""
    return find_expression(visit, node, operand.node) if operand.node is not None else None


def find_expression(visit: Visit, node: cst.CSTNode, expression: ast.expr) -> cst.BaseExpression | None:
    """The libcst expression below ``node`` that lies where an ``ast`` one does."""
    import libcst as cst

    wanted = visit.facts.source.span(expression)
    pending: list[cst.CSTNode] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, cst.BaseExpression) and visit.span(current) == wanted:
            return current
        pending.extend(current.children)
    return None


def find_call(visit: Visit, origin: Origin) -> cst.Call | None:
    """The libcst call of this file that an origin stands for."""
    import libcst as cst

    if origin.filename != str(visit.facts.path):
        return None
    return next((node for node in visit.at(origin.span) if isinstance(node, cst.Call)), None)
