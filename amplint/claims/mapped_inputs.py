"""What a caller passes under a name in a mapping, as a batch is passed: mostly a data loader made it, no autocast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.conflict import Conflict
from amplint.claims.operands import lanes_of
from amplint.infer.lattice.origins import deciding
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.suspect import Suspect
    from amplint.infer.lattice.values import Origin
    from amplint.infer.state.facts import FileFacts


def comes_in_a_mapping(facts: FileFacts, suspect: Suspect) -> bool:
    """Whether a claim rests on what callers may pass, and all of that is read from a mapping: ``batch["image"]``."""
    conflict = suspect.data
    if not isinstance(conflict, Conflict) or not conflict.by_callers:
        return False
    passed = [
        origin
        for operand in (conflict.left, conflict.right)
        for lane in lanes_of(facts, conflict)
        if operand.value.dtypes[lane].assumed and (origin := deciding(operand.value.origin, lane)) is not None
    ]
    return bool(passed) and all(_is_read_by_name(origin) for origin in passed)


def _is_read_by_name(origin: Origin) -> bool:
    """Whether the function that has a parameter reads something from it by a string."""
    if not isinstance(origin.node, ast.arg):
        return False
    name = origin.node.arg
    for function in nodes_of_kind(origin.source.tree, ast.FunctionDef, ast.AsyncFunctionDef):
        arguments = function.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        if origin.node in parameters:
            return any(
                isinstance(node.value, ast.Name)
                and node.value.id == name
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.slice.value, str)
                for node in nodes_of_kind(function, ast.Subscript)
            )
    return False
