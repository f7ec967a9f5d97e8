"""Losses that are scaled for float16 while the forward pass behind them runs in float32."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.training.roles import Role
from amplint.infer.training.steps import Gradients, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.facts import FileFacts
    from amplint.infer.training.program import Place, Scope

_OTHER_PRECISION = (
    b"autocast",
    b"MixedPrecision",
    b"deepspeed",
    b".half()",
    b"torch.float16",
    b"apex",
    b"mixed_precision=",
)
"""What says that a file brings its losses into 16 bit in another way."""
_MODULE_METHODS = frozenset({"parameters", "train", "eval", "zero_grad", "state_dict", "named_parameters"})


def uncast_forwards(facts: FileFacts) -> Iterator[tuple[ast.Call, ast.Call]]:
    """The model's call behind a loss that is scaled, and the backward pass, in a file that has no autocast and no other
    16-bit setting."""
    if any(mark in facts.source.data for mark in _OTHER_PRECISION):
        return
    training = facts.training
    if not training.moments_of(Step.SCALER_STEP):
        return
    modules = set(_modules(facts))
    spoken: set[int] = set()
    for moment in training.moments_of(Step.BACKWARD):
        event = moment.event
        things = training.roles.things.get(event.scaler or (), set())
        if event.gradients != (Gradients.SCALED,) or not any(t.role is Role.SCALER and t.node for t in things):
            continue
        func = event.node.func
        if not isinstance(func, ast.Attribute):
            continue
        call = _model_call(func.value, event.scope, facts, modules)
        if call is not None and id(call) not in spoken:
            spoken.add(id(call))
            yield call, event.node


def _modules(facts: FileFacts) -> Iterator[Place]:
    """The places of models that a caller passes: what is trained, evaluated or asked for parameters, where it is a
    parameter or was set to one. What the file makes may have regions of its own in its forward."""
    program = facts.training.program
    passed: set[Place | None] = set()
    for scope in program.scopes:
        parameters = {argument.arg for argument in scope.parameters()}
        passed |= {(id(scope), name) for name in parameters}
        for target, value in scope.assignments:
            for one, other in _pairs(target, value):
                if isinstance(one, ast.Attribute) and _root(other, facts) in parameters:
                    passed.add(program.place(one, scope))
    for scope in program.scopes:
        for call in scope.calls:
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in _MODULE_METHODS:
                place = program.place(func.value, scope)
                if place is not None and place in passed:
                    yield place


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _root(node: ast.expr, facts: FileFacts) -> str | None:
    """The variable that ``model``, ``model.cuda()`` or ``DistributedDataParallel(model)`` goes back to."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if not isinstance(node, ast.Call):
            return None
        if (facts.training.program.name(node.func) or "").startswith("torch.") and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None


def _model_call(loss: ast.expr, scope: Scope, facts: FileFacts, modules: set[Place]) -> ast.Call | None:
    """The first call of a model that the value of an expression goes back to, through the function's variables."""
    program = facts.training.program
    pending, seen = [loss], set()
    while pending:
        expression = pending.pop(0)
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and program.place(node.func, scope) in modules:
                return node
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                pending += [value for target, value in scope.assignments if _binds(target, node.id)]
    return None


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))
