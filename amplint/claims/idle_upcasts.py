"""Upcasts that autocast undoes where nobody enters autocast, or where nothing is left of the float32 asked for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.result_uses import is_only_compared, uses
from amplint.claims.surroundings import Surroundings
from amplint.judge import doubts
from amplint.judge.certainty import holding

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict
    from amplint.claims.surroundings import FunctionNode
    from amplint.finding import Doubt
    from amplint.infer.state.facts import FileFacts


def idle_doubts(facts: FileFacts, conflict: Conflict) -> list[Doubt]:
    """Why an upcast that autocast undoes may not matter."""
    around, node = Surroundings.of(facts.source.tree), conflict.node
    function = around.function(node)
    if function is None or not isinstance(node, ast.expr):
        return []
    asked = {
        doubts.RUN_BY_NO_MODULE: not may_be_under_autocast(facts, conflict),
        doubts.CAST_BACK: _goes_back(around, function, node),
        doubts.VALUES_DECIDE: is_only_compared(around, function, node),
    }
    return holding(asked)


def may_be_under_autocast(facts: FileFacts, conflict: Conflict) -> bool:
    """Whether a module is seen to run the function around, or may be handed the object that is called, or the function
    itself names autocast; outside of functions nothing is asked."""
    function = Surroundings.of(facts.source.tree).function(conflict.node)
    if function is None:
        return True
    if facts.in_module(function.lineno) or facts.runs_on_weights(function.lineno) or function.name == "__call__":
        return True
    within = facts.source.span(function)
    named = (reference.node for reference in facts.references if "autocast" in (reference.name or ""))
    return any(within.contains(facts.source.span(node)) for node in named)


def _goes_back(around: Surroundings, function: FunctionNode, node: ast.expr) -> bool:
    """Whether a product is cast at once to the dtype of an argument of the function: what it was before the upcast."""
    found = list(uses(around, function, node))
    return bool(found) and all(_is_cast_back(around, function, use) for use in found)


def _is_cast_back(around: Surroundings, function: FunctionNode, use: ast.expr) -> bool:
    method = around.parent(use)
    call = around.parent(method) if isinstance(method, ast.Attribute) else None
    if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not method:
        return False
    if method.attr not in ("to", "type", "type_as") or len(call.args) + len(call.keywords) != 1:
        return False
    wanted = call.args[0] if call.args else call.keywords[0].value
    if isinstance(wanted, ast.Name) and method.attr != "type_as":
        wanted = around.only_value(wanted) or wanted
    if isinstance(wanted, ast.Attribute) and wanted.attr == "dtype":
        wanted = wanted.value
    elif method.attr != "type_as":
        return False
    spec = function.args
    given = [argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return isinstance(wanted, ast.Name) and wanted.id in given and wanted.id not in ("self", "cls")
