"""What a function hands out of what one of its operations gives."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.operands import VIEWS
from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_FLOATING = VIEWS | {
    *("sum", "mean", "prod", "cumsum", "cumprod", "clamp", "clip", "exp", "log", "sqrt", "rsqrt", "pow", "square"),
    *("softmax", "log_softmax", "sigmoid", "tanh", "masked_fill", "div", "mul", "add", "sub", "neg", "abs", "norm"),
}
"""Functions and methods that give one floating tensor of a floating one, in its dtype."""
_WITH_INDICES = frozenset(("topk", "sort", "max", "min", "kthvalue", "median", "mode"))
"""Functions and methods that give values, in the dtype of their tensor, and indices."""
_OTHERS = frozenset(
    (
        *("bool", "long", "int", "float", "double", "half", "bfloat16", "to", "type", "type_as", "item", "tolist"),
        *("argmax", "argmin", "argsort", "nonzero", "size", "dim", "numel", "isnan", "isinf", "isfinite", "any", "all"),
        *("eq", "ne", "lt", "le", "gt", "ge", "multinomial", "bernoulli_"),
    )
)
"""Functions and methods whose result has a dtype of its own."""
_FACTS = frozenset(("shape", "dtype", "device", "ndim", "is_cuda", "grad"))


@dataclass(frozen=True, slots=True)
class HandedOut:
    """What a function returns that has the dtype of an operation's result.

    ``sure``: all of that is floating tensors. ``bound``: the variables that the function gives values.
    """

    values: tuple[ast.expr, ...]
    sure: bool
    bound: frozenset[str]


def handed_out(call: ast.expr, around: Surroundings) -> HandedOut | None:
    """What becomes of a call's result at the returns of its function; None where it is returned as it is, or not."""
    function, (statement, _) = around.function(call), around.statement(call)
    if function is None or not isinstance(statement, ast.Assign):
        return None
    held: dict[str, bool] = {}
    assignments = nodes_of_kind(function, ast.Assign, ast.AugAssign, ast.AnnAssign)
    while True:
        before = dict(held)
        for node in assignments:
            value = node.value
            sure = _carried(value, call, held) if value is not None else None
            if sure is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                _hold([_of_values(target, value) for target in targets], sure, held)
        if held == before:
            break
    values, surely = [], True
    for returned in nodes_of_kind(function, ast.Return):
        value = returned.value
        for each in value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []:
            sure = _carried(each, call, held)
            if sure is not None:
                values.append(each)
                surely = surely and sure
    own = {name.id for target in statement.targets for name in nodes_of_kind(target, ast.Name)}
    if all(isinstance(value, ast.Name) and value.id in own for value in values):
        return None
    bound = frozenset(name.id for name in nodes_of_kind(function, ast.Name) if isinstance(name.ctx, ast.Store))
    return HandedOut(tuple(values), surely, bound)


def _of_values(target: ast.expr, value: ast.expr | None) -> ast.expr:
    """Of ``values, indices = x.topk(2)`` the values."""
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Call) or not target.elts:
        return target
    name = value.func.attr if isinstance(value.func, ast.Attribute) else ""
    return target.elts[0] if name in _WITH_INDICES else target


def _hold(targets: list[ast.expr], sure: bool, held: dict[str, bool]) -> None:
    for target in targets:
        single = isinstance(target, ast.Name)
        for name in nodes_of_kind(target, ast.Name):
            held[name.id] = held.get(name.id, True) and sure and single


def _carried(node: ast.expr, call: ast.expr, held: dict[str, bool]) -> bool | None:
    """Whether an expression has the result's dtype: True, False where that is not sure, None where it has not."""
    if node is call:
        return True
    if isinstance(node, ast.Name):
        return held.get(node.id)
    parts: list[ast.expr]
    floating = True
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not | ast.Invert):
        parts = [node.operand]
    elif isinstance(node, ast.Subscript):
        parts = [node.value]
    elif isinstance(node, ast.Attribute) and node.attr not in _FACTS:
        parts, floating = [node.value], node.attr in ("T", "mT")
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _OTHERS:
            return None
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        known = name in _FLOATING or name in _WITH_INDICES
        parts, floating = [*receiver, *node.args, *(k.value for k in node.keywords)], known
    elif isinstance(node, ast.Tuple | ast.List):
        parts, floating = node.elts, False
    else:
        return None
    found = [sure for part in parts if (sure := _carried(part, call, held)) is not None]
    return floating and all(found) if found else None
