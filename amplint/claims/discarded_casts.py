"""Casts whose result is thrown away: which of them would change a dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.cast_receivers import is_tensor
from amplint.claims.surroundings import Surroundings
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.torch_model.torch_ops import find_op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import CastCall, FileFacts

_OF_MODULES = frozenset(("eval", "train", "parameters", "modules", "children", "state_dict", "load_state_dict"))
"""Methods of modules that no tensor has."""


def _changed(cast: CastCall) -> list[int]:
    """The scenarios in which the cast changes the dtype, for what callers leave out.

    Where neither dtype is known, nothing says that they differ.
    """
    lanes = []
    for number, (before, after) in enumerate(zip(cast.tensor.dtypes, cast.dtypes, strict=True)):
        same = before.exact and before.mask == after.mask
        followed = before.symbol is not None and before.symbol is after.symbol
        known = before.known or after.known or before.symbol is not after.symbol
        if cast.live >> number & 1 and known and not same and not followed:
            lanes.append(number)
    return lanes


def _is_own_dtype(around: Surroundings, call: ast.Call) -> bool:
    """Whether the cast changes nothing: of what an in-place operation gives, which is its tensor, or to its own dtype.

    The dtype may have been read from the tensor before, into a variable.
    """
    target = call.func.value if isinstance(call.func, ast.Attribute) else call
    if isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and _is_in_place(target.func.attr):
        return True
    own = f"{ast.unparse(target)}.dtype"
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    read = [around.only_value(value) if isinstance(value, ast.Name) else value for value in given]
    return any(value is not None and ast.unparse(value) == own for value in read)


def _is_in_place(method: str) -> bool:
    op = find_op(f"torch.Tensor.{method}")
    return op is not None and op.in_place


def _is_module(around: Surroundings, call: ast.Call) -> bool:
    """Whether a method that modules alone have is called, in the same function, of the variable that is cast."""
    node: ast.expr = call
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    function = around.function(call)
    if not isinstance(node, ast.Name) or function is None:
        return False
    used = (n for n in nodes_of_kind(function, ast.Attribute) if n.attr in _OF_MODULES)
    return any(isinstance(n.value, ast.Name) and n.value.id == node.id for n in used)


def discarded_casts(facts: FileFacts) -> Iterator[tuple[CastCall, list[int]]]:
    """The thrown-away casts of tensors, and in which scenarios they may change the dtype."""
    discarded = [cast for cast in facts.casts if cast.discarded and is_tensor(cast)]
    around = Surroundings.of(facts.source.tree) if discarded else None
    for cast in discarded:
        assert around is not None
        lanes = _changed(cast)
        if lanes and not _is_own_dtype(around, cast.node) and not _is_module(around, cast.node):
            yield cast, lanes
