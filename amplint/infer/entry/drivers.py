"""Functions that drive training or evaluation: no autocast is around them but what they, or what they call, open."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.decorators import Decorated
from amplint.infer.names import classes
from amplint.infer.names.definitions import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.names.namespace import Namespace

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def drives(function: Function, known: dict[int, bool]) -> bool:
    """Whether a function of no module opens a region of autocast, works on gradients as optimizers do, or calls a
    function of its own object or file that does: a step of training that opens its own region is called in none.

    ``known``: what was found of functions before, by the ``id`` of their nodes.
    """
    assert not isinstance(function.node, ast.Lambda)
    if id(function.node) not in known:
        known[id(function.node)] = _leads_to_one(function.node, function.owner, function.namespace)
    return known[id(function.node)]


def _leads_to_one(node: _Definition, owner: Class | None, namespace: Namespace) -> bool:
    pending, seen = [(node, owner, namespace)], {id(node)}
    while pending:
        node, owner, namespace = pending.pop()
        if namespace.body(node).driver or classes.is_optimizer(owner):
            return True
        further = [called for called in _called(node, owner, namespace) if id(called[0]) not in seen]
        seen |= {id(called[0]) for called in further}
        pending += further
    return False


def _called(
    node: _Definition, owner: Class | None, namespace: Namespace
) -> Iterator[tuple[_Definition, Class | None, Namespace]]:
    """The functions that one may call, as it mentions them: its object's methods, and those at the top of its file."""
    body = namespace.body(node)
    if owner is not None and not classes.is_module(owner):
        for name in body.asked:
            member = classes.find_member(owner, name)
            while isinstance(member, Decorated):
                member = member.function
            if isinstance(member, Function) and not isinstance(member.node, ast.Lambda):
                yield member.node, member.owner, member.namespace
    for name in body.names.intersection(namespace.bindings):
        for binding in namespace.bindings[name]:
            if isinstance(binding, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield binding, None, namespace
