"""Whether anything divides by a number, or takes its logarithm: what is done to it in its function and by callers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import uses_behind
from amplint.infer.names.annotations import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

_MAX_STEPS = 8
_DIVISIONS = frozenset(("div", "div_", "divide", "true_divide"))
_LIMITS = frozenset(("clamp", "clip", "clamp_min"))
_KEEPING = frozenset(
    (
        *("cat", "stack", "concat", "matmul", "mm", "bmm", "einsum", "mul", "add", "sub", "sum", "mean", "to", "float"),
        *("unsqueeze", "squeeze", "repeat", "expand", "view", "reshape", "transpose", "permute", "type_as", "sqrt"),
    )
)
"""What hands its operands on without dividing by them."""
_LEAST = 2.0**-24


def may_divide(tree: ast.Module, around: Surroundings, node: ast.expr) -> bool:
    """Whether something divides by what an expression gives, or may: it goes where this cannot be followed.

    Followed through variables, sums, products and matrix products, and out of a function to its callers in the file.
    What ``forward`` returns counts as not divided by, and so does what is limited from below by a number that float16
    holds.
    """
    return _may_divide(tree, around, node, _MAX_STEPS)


def _may_divide(tree: ast.Module, around: Surroundings, node: ast.expr, steps: int) -> bool:
    if steps == 0:
        return True
    current: ast.AST = node
    for ancestor in around.ancestors(node):
        if isinstance(ancestor, ast.BinOp):
            if isinstance(ancestor.op, ast.Div) and ancestor.right is current:
                return True
            if not isinstance(ancestor.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.MatMult):
                return True
        elif isinstance(ancestor, ast.Call):
            handed_on = _handed_on(around, ancestor, current)
            if handed_on is not None:
                return not handed_on
        elif isinstance(ancestor, ast.Assign):
            return _may_divide_kept(tree, around, ancestor.targets, node, steps)
        elif isinstance(ancestor, ast.Return):
            return _may_divide_returned(tree, around, ancestor, current, steps)
        elif not isinstance(ancestor, ast.Attribute | ast.List | ast.Tuple):
            return True
        if not (isinstance(ancestor, ast.Tuple) and isinstance(around.parent(ancestor), ast.Return)):
            current = ancestor
    return True


def _handed_on(around: Surroundings, call: ast.Call, current: ast.AST) -> bool | None:
    """Whether a call keeps its operand from being a divisor: None where it hands it on, False where it may divide."""
    name = around.called(call)
    if call.func is not current and name in _DIVISIONS and call.args[:1] == [current]:
        return None
    if name in _LIMITS and any(isinstance(n, ast.Constant) and _is_held(n.value) for n in _limits(call)):
        return True
    return None if name in _KEEPING else False


def _limits(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "min")


def _is_held(value: object) -> bool:
    return isinstance(value, float) and value >= _LEAST


def _may_divide_kept(
    tree: ast.Module, around: Surroundings, targets: list[ast.expr], node: ast.expr, steps: int
) -> bool:
    function = around.function(node)
    (target, *others) = targets
    if function is None or others or not isinstance(target, ast.Name):
        return True
    return any(_may_divide(tree, around, use, steps - 1) for use in uses_behind(function, target.id, node))


def _may_divide_returned(
    tree: ast.Module, around: Surroundings, statement: ast.Return, current: ast.AST, steps: int
) -> bool:
    """Whether callers in the file divide by what a function returns; those in other files may."""
    function = around.function(statement)
    if function is None:
        return True
    if function.name == "forward":
        return False
    several = statement.value.elts if isinstance(statement.value, ast.Tuple) else None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and last_name(n.func) == function.name]
    for call in calls:
        if several is None:
            if _may_divide(tree, around, call, steps - 1):
                return True
            continue
        bound = around.parent(call)
        target = bound.targets[0] if isinstance(bound, ast.Assign) else None
        caller = around.function(call)
        if not isinstance(target, ast.Tuple) or len(target.elts) != len(several) or caller is None:
            return True
        kept = next((t for t, value in zip(target.elts, several, strict=True) if value is current), None)
        if not isinstance(kept, ast.Name):
            return True
        if any(_may_divide(tree, around, use, steps - 1) for use in uses_behind(caller, kept.id, call)):
            return True
    return not calls
