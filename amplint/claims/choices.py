"""Whether what an operation gives decides a choice: of experts, of tokens. A sample is drawn by chance anyhow."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import uses_behind

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings

_CHOOSERS = frozenset(("topk",))
_POINTERS = frozenset(("argmax", "argmin"))
"""What is asked for the best index; with the shares themselves used too, they weigh what was chosen."""


def decides(surroundings: Surroundings, node: ast.expr) -> bool:
    """Whether a tensor is handed to ``topk``, or to ``argmax`` and used besides.

    Followed through one variable of the function that the expression stands in.
    """
    if _is_chosen_from(surroundings, node, _CHOOSERS):
        return True
    name, function = _assigned(surroundings, node), surroundings.function(node)
    if name is None or function is None:
        return False
    uses = list(uses_behind(function, name, node))
    if any(_is_chosen_from(surroundings, use, _CHOOSERS) for use in uses):
        return True
    pointed = [use for use in uses if _is_chosen_from(surroundings, use, _POINTERS)]
    return bool(pointed) and len(pointed) < len(uses)


def _assigned(surroundings: Surroundings, node: ast.expr) -> str | None:
    """The variable that an expression is assigned to, as it is or after a cast or a change of shape."""
    current: ast.AST = node
    for ancestor in surroundings.ancestors(node):
        if isinstance(ancestor, ast.Assign):
            (target, *others) = ancestor.targets
            return target.id if isinstance(target, ast.Name) and not others else None
        if not (isinstance(ancestor, ast.Attribute) or (isinstance(ancestor, ast.Call) and ancestor.func is current)):
            return None
        current = ancestor
    return None


def _is_chosen_from(surroundings: Surroundings, node: ast.expr, choosers: frozenset[str]) -> bool:
    """Whether an expression, or a sum, slice or reshaped form of it, is what one of these functions is asked about."""
    current: ast.AST = node
    for ancestor in surroundings.ancestors(node):
        if isinstance(ancestor, ast.Call):
            if current in ancestor.args:
                chosen = ancestor.args[0] is current and surroundings.called(ancestor) in choosers
                return chosen and not _drops_places(surroundings, ancestor)
            if current is not ancestor.func:
                return False
            if surroundings.called(ancestor) in choosers:
                return not _drops_places(surroundings, ancestor)
        elif not isinstance(ancestor, ast.BinOp | ast.Attribute) and not (
            isinstance(ancestor, ast.Subscript) and ancestor.value is current
        ):
            return False
        current = ancestor
    return False


def _drops_places(surroundings: Surroundings, call: ast.Call) -> bool:
    """Whether of the largest values and their places only the values are kept."""
    parent = surroundings.parent(call)
    if isinstance(parent, ast.Attribute):
        return parent.attr == "values"
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.slice, ast.Constant) and parent.slice.value == 0
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple):
        first, last = parent.targets[0].elts[0], parent.targets[0].elts[-1]
        function = surroundings.function(call)
        kept = isinstance(last, ast.Name) and function is not None and any(uses_behind(function, last.id, call))
        dropped = isinstance(last, ast.Name) and not kept
        return dropped or (isinstance(first, ast.Name) and _weighs_nothing(surroundings, call, first.id))
    return False


def _weighs_nothing(surroundings: Surroundings, call: ast.Call, name: str) -> bool:
    """Whether the values that were chosen are returned under a name, and nothing is done with them but reshaping.

    Rounding then decides between values alone that were as good as equal: the order of the others is the same.
    """
    function = surroundings.function(call)
    reads = [
        n
        for n in (ast.walk(function) if function is not None else ())
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n.lineno > call.lineno
    ]
    named = any(isinstance(surroundings.parent(read), ast.keyword) for read in reads)
    return named and all(_is_handed_on(surroundings, read) for read in reads)


def _is_handed_on(surroundings: Surroundings, read: ast.Name) -> bool:
    """``return Output(best=best)``, ``outputs = (best, index)`` or ``best = best.view(-1)``."""
    parent = surroundings.parent(read)
    for ancestor in surroundings.ancestors(read):
        if isinstance(ancestor, ast.Return):
            return True
        if isinstance(ancestor, ast.Assign):
            (target, *others) = ancestor.targets
            again = isinstance(target, ast.Name) and target.id == read.id and not others
            return again or (isinstance(parent, ast.Tuple) and ancestor.value is parent)
        if isinstance(ancestor, ast.BinOp | ast.stmt):
            return False
    return False
