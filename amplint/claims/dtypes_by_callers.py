"""Operands whose dtypes callers decide: where another place of the file shows that they may differ."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.disagreement import label
from amplint.claims.surroundings import Surroundings

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict
    from amplint.infer.state.facts import FileFacts


def aligned_elsewhere(facts: FileFacts, conflict: Conflict) -> str | None:
    """What to say where callers decide both dtypes, and another place of the file makes them agree."""
    if conflict.aligned is None:
        return None
    names = [f"`{ast.unparse(o.node)}`" for o in (conflict.left, conflict.right) if o.node is not None]
    operands = " and ".join(names) if len(names) > 1 else "operands"
    if facts.span(conflict.node).contains(conflict.aligned):
        return f"{label(facts, conflict)} gets {operands}, and only another operand is cast to one dtype with them"
    line = conflict.aligned.start.row
    return f"{label(facts, conflict)} gets {operands} uncast; line {line} casts such operands to one dtype first"


def brought_to_dtype(facts: FileFacts, conflict: Conflict) -> bool:
    """Whether the function hands an operand to something together with a dtype before it comes to the operation."""
    around = Surroundings.of(facts.source.tree)
    function = around.function(conflict.node)
    operands = {
        name.id
        for operand in (conflict.left, conflict.right)
        for name in (ast.walk(operand.node) if operand.node is not None else ())
        if isinstance(name, ast.Name)
    }
    for node in ast.walk(function) if function is not None else ():
        if not isinstance(node, ast.Call) or node.lineno >= conflict.node.lineno:
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not any(around.is_dtype(part) for part in given):
            continue
        if operands & {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} - {"self", "torch"}:
            return True
    return False
