"""Regions that switch autocast off: where they are, and which dtype what is used in them has."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.operands import is_stable
from amplint.claims.surroundings import FunctionNode, Surroundings
from amplint.infer.lattice.dtypes import FLOAT32, FLOAT64
from amplint.infer.names.annotations import last_name
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict
    from amplint.infer.state.facts import FileFacts, Region
    from amplint.infer.state.operand import Operand

_NO_WEIGHT = frozenset(("LSTM", "GRU", "RNN", "MultiheadAttention"))
"""Layers whose parameters have other names than those of the operation that they apply."""


def region_around(facts: FileFacts, conflict: Conflict, surroundings: Surroundings) -> Region | None:
    """The region around an operation that has switched autocast off; None where it stands in a caller elsewhere."""
    off = [
        region
        for region in facts.regions
        if any(before.on and not inside.low for before, inside in zip(region.before, region.inside, strict=True))
    ]
    by_node = {id(region.node): region for region in off}
    for ancestor in surroundings.ancestors(conflict.node):
        written: list[ast.expr] = []
        if isinstance(ancestor, ast.With | ast.AsyncWith):
            written = [item.context_expr for item in ancestor.items]
        elif isinstance(ancestor, FunctionNode):
            written = ancestor.decorator_list
        for expression in written:
            if id(expression) in by_node:
                return by_node[id(expression)]
    return off[0] if len(off) == 1 else None


def layer_dtype(facts: FileFacts, parameter: Operand, given: Operand) -> str | None:
    """An expression for the dtype of a called layer.

    That of the parameter itself where the layer is known to have it by that name; that of its first one where the call
    may reach a container, or a layer that names its parameters otherwise, and that of what it is given where it may
    reach a layer without any.
    """
    layer = parameter.node
    if layer is None or not is_stable(layer):
        return None
    if _is_built_as(facts, layer, parameter):
        return f"{ast.unparse(layer)}.{parameter.name}.dtype"
    if given.node is None or not is_stable(given.node):
        return None
    return f"next({ast.unparse(layer)}.parameters(), {ast.unparse(given.node)}).dtype"


def _is_built_as(facts: FileFacts, layer: ast.expr, parameter: Operand) -> bool:
    """Whether the layer that owns the parameter is assigned, in this file, to the name that is called."""
    origin = parameter.value.origin
    if origin is None or origin.filename != str(facts.path):
        return False
    for node in nodes_of_kind(facts.source.tree, ast.Assign):
        if isinstance(node.value, ast.Call) and facts.span(node.value) == origin.span:
            named = any(last_name(target) == last_name(layer) for target in node.targets)
            return named and last_name(node.value.func) not in _NO_WEIGHT
    return False


def is_cast_to(operand: Operand, dtype: int) -> bool:
    """Whether the code itself gives an operand a dtype, one that converting the module does not change."""
    value = operand.value
    if not value.explicit or value.leaf or (value.origin is not None and value.origin.placed):
        return False
    return all(lane.exact and lane.mask == dtype for lane in value.dtypes)


def full_precision(conflict: Conflict) -> tuple[str, int]:
    """The cast that loses nothing of any operand, and the dtype that it gives."""
    wide = any(lane.mask & FLOAT64 for operand in conflict.operands for lane in operand.value.dtypes)
    return (".double()", FLOAT64) if wide else (".float()", FLOAT32)
