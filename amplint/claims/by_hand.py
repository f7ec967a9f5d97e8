"""Which operations are given operands that the code itself has cast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import CASTS
from amplint.infer.lattice.origins import lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.infer.lattice.values import Tensor
    from amplint.infer.state.function_facts import Sensitive
    from amplint.infer.state.operand import Operand

_CASTING = frozenset((*CASTS, "to", "type", "type_as"))
_VIEWS = frozenset(("t", "transpose", "permute", "view", "reshape", "flatten", "contiguous", "T", "mT", "H", "mH"))
"""Methods and attributes that keep a dtype and that products are given."""


def by_hand(operation: Sensitive) -> bool:
    """Whether the code casts the operands to one dtype itself."""
    return _aligned(operation.operands) or _cast_alike(operation.written)


def _aligned(operands: Sequence[Operand]) -> bool:
    """Whether the code casts all operands to one dtype, or all but the one that has the dtype of the others."""
    if len({operand.value.dtypes for operand in operands}) > 1:
        return False
    cast = sum(_is_cast(operand.value) for operand in operands)
    return cast > 0 and cast >= len(operands) - 1


def all_cast(operation: Sensitive) -> bool:
    """Whether the code casts all operands, on one way at least, to dtypes that are not known to differ."""
    masks = {tuple(lane.mask for lane in operand.value.dtypes) for operand in operation.operands}
    return len(masks) == 1 and all(_is_cast(operand.value) for operand in operation.operands)


def agree(operation: Sensitive) -> bool:
    """Whether the operands of which something is known have one dtype, wherever they got it."""
    known = (operand.value.dtypes for operand in operation.operands)
    return len({dtypes for dtypes in known if any(lane.mask for lane in dtypes)}) == 1


def _cast_alike(expressions: Sequence[ast.expr | None]) -> bool:
    """Whether one operand is as it is and all others are written as cast to its dtype: ``g @ w.to(g.dtype).t()``.

    That tells even where nothing is known of what is cast.
    """
    plain = [_without_views(expression) for expression in expressions if expression is not None]
    if len(plain) < max(len(expressions), 2):
        return False
    return any(all(_is_cast_like(other, lead) for other in plain if other is not lead) for lead in plain)


def _without_views(node: ast.expr) -> ast.expr:
    while True:
        path = node.func if isinstance(node, ast.Call) else node
        if not isinstance(path, ast.Attribute) or path.attr not in _VIEWS:
            return node
        node = path.value


def _is_cast_like(node: ast.expr, lead: ast.expr) -> bool:
    """Whether an expression is ``x.to(lead.dtype)``, ``x.type_as(lead)`` or the like."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
        return False
    wanted = ast.unparse(lead)
    given = ast.unparse(node.args[0])
    return not node.keywords and given == {"to": f"{wanted}.dtype", "type_as": wanted}.get(node.func.attr)


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
