"""Sparse products in float32."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.operands import dtype_of_tensor, is_stable
from amplint.finding import Applicability
from amplint.rewriting.nodes import find_operand
from amplint.rewriting.regions import without_autocast

if TYPE_CHECKING:
    import libcst as cst

    from amplint.claims.refused_operands import Refusal
    from amplint.finding import Fix
    from amplint.visit import Visit


def sparse_product_fix(node: cst.BaseExpression, refusal: Refusal, visit: Visit) -> Fix | None:
    """The product in float32, where autocast is off, and its result in the dense operand's dtype again."""
    import libcst as cst

    dense = next((o.node for o in refusal.use.operands[-2:] if o is not refusal.sparse), None)
    found = [find_operand(visit, node, operand) for operand in refusal.use.operands]
    dtype = dtype_of_tensor(dense) if dense is not None else None
    if refusal.sparse is None or dense is None or dtype is None or not is_stable(dense):
        return None
    region = without_autocast(visit, node, f"{ast.unparse(dense)}.device.type")
    operands = [expression for expression in found if isinstance(expression, cst.Name | cst.Attribute | cst.Call)]
    if region is None or len(operands) != len(refusal.use.operands):
        return None
    if isinstance(node, cst.BinaryOperation):
        left, right = (f"{visit.code(expression)}.float()" for expression in operands)
        edits = [visit.replace(node, f"({left} @ {right}).to({dtype})")]
    else:
        edits = [
            *(visit.append(expression, ".float()") for expression in operands),
            visit.append(node, f".to({dtype})"),
        ]
    return visit.fix(Applicability.UNSAFE, "Compute it in float32 with autocast switched off", *region, *edits)
