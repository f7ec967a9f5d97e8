"""Operands whose dtypes callers decide: where another place of the file shows that they may differ."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.disagreement import label

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
