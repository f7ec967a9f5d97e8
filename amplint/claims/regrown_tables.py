"""Tables that a constructor fills, and that a module makes anew only once they are too short."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def only_regrown(node: ast.AST, around: Surroundings) -> bool:
    """Whether what a method computes at ``node`` only replaces a table that the constructor has filled.

    What it stores, the constructor stores as well, and more than a constant; and a comparison in order with a part of
    that leads to ``node``, or to each call of the method but the constructor's. Autocast is not on in the constructor,
    and half weights do not exist yet.
    """
    method = around.function(node)
    owner = around.parent(method) if method is not None else None
    if not isinstance(owner, ast.ClassDef) or not isinstance(method, ast.FunctionDef) or not method.args.args:
        return False
    methods = {s.name: s for s in owner.body if isinstance(s, ast.FunctionDef)}
    constructor = methods.get("__init__")
    if constructor is None or method is constructor:
        return False
    filled = frozenset(_filled(constructor, methods))
    if _replaces(node, frozenset(), filled, around):
        return True
    calls = [call for call in _calls(owner, method.name) if around.function(call) not in (method, constructor)]
    stored = frozenset(_stored(method))
    return bool(calls) and all(_replaces(call, stored, filled, around) for call in calls)


def _replaces(node: ast.AST, stored: frozenset[str], filled: frozenset[str], around: Surroundings) -> bool:
    """Whether a branch leads to ``node`` by a comparison with what is stored, there or as said, and was filled."""
    for branch in around.ancestors(node):
        if isinstance(branch, ast.If):
            replaced = stored or frozenset(name for statement in branch.body for name in _stored(statement))
            if replaced and replaced <= filled and _compares(branch.test, replaced):
                return True
    return False


def _compares(test: ast.expr, stored: frozenset[str]) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr in stored
        for comparison in ast.walk(test)
        if isinstance(comparison, ast.Compare) and any(isinstance(op, _ORDERED) for op in comparison.ops)
        for part in ast.walk(comparison)
    )


def _filled(constructor: ast.FunctionDef, methods: dict[str, ast.FunctionDef]) -> Iterator[str]:
    """What a constructor stores whatever happens, itself or by a method that it calls, unless it is a constant."""
    for statement in constructor.body:
        yield from _stored(statement)
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in methods:
            yield from _stored(methods[call.func.attr])


def _calls(owner: ast.ClassDef, name: str) -> Iterator[ast.Call]:
    """The calls of a method of that name in a class."""
    for node in nodes_of_kind(owner, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def _stored(body: ast.AST) -> Iterator[str]:
    """The attributes and buffers that are set to more than a constant."""
    for node in nodes_of_kind(body, ast.Assign, ast.Call):
        if isinstance(node, ast.Assign):
            if not isinstance(node.value, ast.Constant):
                yield from (target.attr for target in node.targets if isinstance(target, ast.Attribute))
        elif isinstance(node.func, ast.Attribute) and len(node.args) > 1:
            name, value = node.args[:2]
            written = name.value if isinstance(name, ast.Constant) and not isinstance(value, ast.Constant) else None
            if node.func.attr == "register_buffer" and isinstance(written, str):
                yield written
