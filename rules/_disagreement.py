"""What the rules about disagreeing operands share: from a conflict to a suspect, from an operand to its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.suspect import Suspect
from amplint.finding import Place, Severity

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    import libcst as cst

    from amplint.infer.facts import Conflict, FileFacts, Kind, Operand
    from amplint.visit import Visit


def suspects_of(facts: FileFacts, *kinds: Kind) -> Iterator[Suspect]:
    """A suspect for each conflict of these kinds, at the operation, with the conflict as its data."""
    for conflict in facts.conflicts:
        if conflict.kind in kinds:
            span = facts.span(conflict.node)
            yield Suspect(
                span=span,
                node=span,
                message=message_of(conflict),
                scenarios=conflict.scenarios,
                standing=conflict.standing,
                causes=conflict.causes,
                severity=Severity.ERROR if conflict.raises and not conflict.cited else Severity.WARNING,
                data=conflict,
                of_weights=conflict.aligned is None,
                culprit=conflict.culprit,
                also=tuple(Place(facts.path, facts.span(node)) for node in conflict.also),
            )


def message_of(conflict: Conflict) -> str:
    """``linear gets float32 input and bfloat16 weight``."""
    left, right = conflict.left, conflict.right
    if left.name == right.name:
        return f"{short_name(conflict.op)} gets {conflict.left_dtype} and {conflict.right_dtype} operands"
    return f"{short_name(conflict.op)} gets {conflict.left_dtype} {left.name} and {conflict.right_dtype} {right.name}"


def short_name(op: str) -> str:
    """An operation's name without the module that it comes from."""
    return op.rsplit(".", 1)[-1]


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
