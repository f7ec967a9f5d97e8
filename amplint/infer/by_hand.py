"""Which operations autocast can lower, and which are given operands that the code itself has cast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.dtypes import AUTOCASTABLE, CASTS
from amplint.infer.origins import lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.infer.facts import Operand
    from amplint.infer.values import Tensor

_CASTING = frozenset((*CASTS, "to", "type", "type_as"))


def can_be_lowered(operands: Sequence[Operand]) -> bool:
    """Whether autocast casts one of the operands: it leaves complex and float64 ones alone."""
    dtypes = [lane for operand in operands for lane in operand.value.dtypes]
    return not dtypes or any(lane.open or lane.mask & AUTOCASTABLE for lane in dtypes)


def aligned_by_hand(operands: Sequence[Operand]) -> bool:
    """Whether the code casts all operands to one dtype, or all but the one that has the dtype of the others."""
    if len({operand.value.dtypes for operand in operands}) > 1:
        return False
    cast = sum(_is_cast(operand.value) for operand in operands)
    return cast > 0 and cast >= len(operands) - 1


def _is_cast(tensor: Tensor) -> bool:
    """Whether a cast decided the dtype since the tensor came into the function."""
    for lane in range(len(tensor.dtypes)):
        for origin in lineage(tensor.origin, lane):
            node = origin.node
            if isinstance(node, ast.arg):
                break
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTING:
                return True
    return False
