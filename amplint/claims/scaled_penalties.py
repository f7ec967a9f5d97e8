"""Gradients that a training step computes by ``torch.autograd.grad`` beside a scaler, and does not treat as what they
are: multiplied by the loss scale, or not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.flow.training.events import of_gradient
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Step
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.infer.flow.training.program import Scope
    from amplint.infer.state.facts import FileFacts


class Penalty(NamedTuple):
    """Where gradients are used with a wrong scale, the call that computes them, and whether that call scales."""

    node: ast.expr
    computed: ast.Call
    scaled: bool


def penalties(facts: FileFacts) -> Iterator[Penalty]:
    """Gradients that are divided by the scale although what they are of is not scaled, and those of a scaled loss that
    are computed with although the function never asks for the scale.

    After torch's notes on automatic mixed precision, "Gradient penalty": the outputs are scaled, the gradients are
    divided by ``scaler.get_scale()``, and the penalty is made of these. A function that computes gradients in two
    places may do so once with a scaler and once without.
    """
    calls: dict[int, list[ast.Call]] = {}
    for moment in facts.training.moments_of(Step.AUTOGRAD_GRAD):
        calls.setdefault(id(moment.event.scope), []).append(moment.event.node)
    for scope in facts.training.program.scopes:
        call, *others = calls.get(id(scope), (None,))
        outputs = _outputs(call) if call is not None else None
        if call is None or outputs is None or others:
            continue
        roles = {thing.role for part in _each(outputs) for thing in facts.training.roles.of(part, scope)}
        gradients = _made_of(scope, {id(call)})
        scales = _asked_for(scope, gradients)
        if Role.SCALED not in roles:
            known = scales and _is_known(outputs, scope, facts) and not _goes_with_scale(call, scope, scales)
            divided = _met(scope, gradients, scales) if known else None
            if divided is not None:
                yield Penalty(divided, call, scaled=False)
        elif roles == {Role.SCALED} and not scales and not _is_handed_on(scope, gradients, call):
            computed = _computed_with(scope, gradients)
            if computed is not None:
                yield Penalty(computed, call, scaled=True)


def _outputs(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "outputs"), None)


def _each(node: ast.expr) -> Iterable[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else (node,)


def _is_known(outputs: ast.expr, scope: Scope, facts: FileFacts) -> bool:
    """Whether the file shows what gradients are taken of: a function that nothing in the file calls may be given what
    is scaled."""
    named = {part.id for part in ast.walk(outputs) if isinstance(part, ast.Name)}
    if named.isdisjoint(parameter.arg for parameter in scope.parameters()):
        return True
    program = facts.training.program
    return any(program.callee(call, caller) is scope for caller in program.scopes for call in caller.calls)


def _goes_with_scale(call: ast.Call, scope: Scope, scales: frozenset[str]) -> bool:
    """Whether what a call is given, or the variables in it, is made with the scale: ``map(scaler.scale, outputs)``."""
    wanted = {"scale", *scales}
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    named = {name for value in given for name in _names(value)}
    made = [value for target, value in scope.assignments if not named.isdisjoint(_names(target))]
    return any(_reads(value, wanted) for value in (*given, *made))


def _asked_for(scope: Scope, gradients: frozenset[str]) -> frozenset[str]:
    """The variables that hold the scale or its inverse, and no gradients; ``get_scale`` itself where that is read."""
    read = any(isinstance(node, ast.Attribute) and node.attr == "get_scale" for node in nodes_below(scope.node))
    return _closure(scope, {"get_scale"}, gradients) if read else frozenset()


def _made_of(scope: Scope, calls: set[int]) -> frozenset[str]:
    """The variables that hold what some calls give, or some of it."""
    named = set[str]()
    for target, value in scope.assignments:
        if any(id(part) in calls for part in ast.walk(value)):
            named |= _names(target)
    return _closure(scope, named)


def _closure(scope: Scope, named: set[str], others: frozenset[str] = frozenset()) -> frozenset[str]:
    """Some names, and the variables that are given something made of them, and of no others."""
    found = set(named)
    while True:
        more = {
            name
            for target, value in scope.assignments
            if _reads(value, found) and not _reads(value, others)
            for name in _names(target)
            if isinstance(target, ast.Name | ast.Tuple | ast.List)
        }
        for node in nodes_below(scope.node):
            if not isinstance(node, ast.comprehension | ast.For) or _reads(node.iter, others):
                continue
            more |= _names(node.target) if _reads(node.iter, found) else set()
        if more <= found:
            return frozenset(found)
        found |= more


def _names(node: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _reads(node: ast.AST, names: Iterable[str]) -> bool:
    wanted = frozenset(names)
    return any(getattr(part, "attr", getattr(part, "id", None)) in wanted for part in ast.walk(node))


def _met(scope: Scope, gradients: frozenset[str], scales: frozenset[str]) -> ast.expr | None:
    """The first product or quotient of gradients with the scale or its inverse."""
    products = (node for node in nodes_below(scope.node) if isinstance(node, ast.BinOp))
    for node in sorted(products, key=lambda node: (node.lineno, node.col_offset)):
        if not isinstance(node.op, ast.Mult | ast.Div):
            continue
        sides = (node.left, node.right), (node.right, node.left)
        if any(_reads(one, gradients) and not _reads(one, scales) and _reads(other, scales) for one, other in sides):
            return node
    return None


def _is_handed_on(scope: Scope, gradients: frozenset[str], call: ast.Call) -> bool:
    """Whether others get the gradients, who may divide them: they are returned, kept as some tensor's ``grad``, or
    passed to a function by themselves."""
    for value in scope.returned:
        if _reads(value, gradients) or any(part is call for part in ast.walk(value)):
            return True
    for target, value in scope.assignments:
        if isinstance(target, ast.Attribute | ast.Subscript) and (of_gradient(target) or _reads(value, gradients)):
            return True
    passed = (argument for other in scope.calls for argument in other.args)
    return any(isinstance(argument, ast.Name) and argument.id in gradients for argument in passed)


def _computed_with(scope: Scope, gradients: frozenset[str]) -> ast.expr | None:
    """The first method of gradients by which a number is made of them."""
    for call in scope.calls:
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in ("norm", "pow", "square") and _reads(func.value, gradients):
            return call
    return None
