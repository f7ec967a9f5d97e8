"""In which scenarios an operation is not reached, since a constant above it does not fit its tensor's dtype."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from amplint.infer.dtypes import FLOAT16
from amplint.infer.values import Limit

from ._disagreement import short_name
from ._low_precision import low_lanes

if TYPE_CHECKING:
    from amplint.infer.facts import FileFacts, Use

    from ._surroundings import Surroundings

_FILLERS = {"masked_fill": "value", "fill": "value", "full_like": "fill_value", "index_fill": "value"}
"""What raises for a number that the dtype of its tensor does not hold, and the parameter of the number."""
_LARGEST = 65504.0


def refused_above(facts: FileFacts, around: Surroundings, node: ast.expr | ast.stmt) -> frozenset[int]:
    """The scenarios, by number, in which a constant raises in float16 before a node of the same function comes.

    The constant stands above in a block that the node is in, too: no branch leads round it.
    """
    function = around.function(node)
    lanes: set[int] = set()
    for use in facts.uses:
        number = use.numbers.get(_FILLERS.get(short_name(use.op).rstrip("_"), ""))
        if number is None or isinstance(number, Limit) or not _LARGEST < abs(number) < math.inf:
            continue
        if around.function(use.node) is function and _leads(around, use, node):
            lanes.update(low_lanes(facts, use, use.operands[0], lambda _, bit: bit == FLOAT16))
    return frozenset(lanes)


def _leads(around: Surroundings, use: Use, node: ast.expr | ast.stmt) -> bool:
    above, _ = around.statement(use.node)
    below = {id(ancestor) for ancestor in (node, *around.ancestors(node)) if isinstance(ancestor, ast.stmt)}
    if above is None or id(above) in below or above.lineno > node.lineno:
        return False
    return around.block(above) in {around.block(s) for s in (node, *around.ancestors(node)) if isinstance(s, ast.stmt)}
