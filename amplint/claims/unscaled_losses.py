"""Losses of a float16 forward pass that are never multiplied by a loss scale, in files where no scaler is used."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.region_dtypes import is_of_float16
from amplint.infer.flow.training.paths import switched_off
from amplint.infer.flow.training.roles import Role, is_autocast, is_scaler
from amplint.infer.flow.training.steps import Gradients, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Scope
    from amplint.infer.flow.training.training import Training
    from amplint.infer.state.facts import FileFacts

_SCALING = (Role.SCALER, Role.SHARDED_SCALER, Role.IDLE_SCALER, Role.MANAGER)
_SETTERS = ("torch.set_autocast_gpu_dtype", "torch.set_autocast_dtype")
"""What makes a region that names no dtype one of another dtype than float16."""


def unscaled_losses(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Backward passes of a loss that a float16 region computed, each with the region, where an optimizer steps after.

    ``Tensor.backward`` from float16 operations gives gradients of which those below 6e-8 are zero; nothing but a scale
    on the loss keeps them (torch's notes on automatic mixed precision).
    """
    training = facts.training
    backward = [m.event for m in training.moments_of(Step.BACKWARD) if m.event.gradients == (Gradients.PLAIN,)]
    if not backward or _may_scale(facts):
        return
    steps = [m.event for m in training.moments_of(Step.OPTIMIZER_STEP)]
    for event in backward:
        if not any(s.scope is event.scope and s.node.lineno > event.node.lineno for s in steps):
            continue
        region = _region_of(event.node, event.scope, facts, around)
        if region is not None:
            yield event.node, region


def _may_scale(facts: FileFacts) -> bool:
    """Whether a file scales, or something else may do so for it: it calls ``scale`` of what is not known, or has a
    scaler that others may use. A scaler that a function makes and does nothing with scales nothing."""
    training = facts.training
    if any(reference.name in _SETTERS for reference in facts.references):
        return True
    idle = _unused_scalers(training)
    named = (r for r in facts.references if is_scaler(r.name) and not isinstance(r.node, ast.alias))
    if any(reference.call is None or id(reference.call) not in idle for reference in named):
        return True
    things = {thing for some in training.roles.things.values() for thing in some if thing.role in _SCALING}
    if any(id(thing.node) not in idle for thing in things):
        return True
    called = (call.func for scope in training.program.scopes for call in scope.calls)
    return any(isinstance(function, ast.Attribute) and function.attr in ("scale", "unscale_") for function in called)


def _unused_scalers(training: Training) -> set[int]:
    """Identifies the calls that make a scaler for a variable of a function, from which nobody else gets it."""
    program = training.program
    functions = {id(scope) for scope in program.scopes if scope is not program.module}
    return {
        id(thing.node)
        for place, things in training.roles.things.items()
        for thing in things
        if thing.role in _SCALING and place[0] in functions and len(place) == 2 and not training.handed_over(place)
    }


def _region_of(backward: ast.Call, scope: Scope, facts: FileFacts, around: Surroundings) -> ast.Call | None:
    """The float16 region in which all that the loss is given is computed."""
    if not isinstance(backward.func, ast.Attribute):
        return None
    for loss in [node.id for node in ast.walk(backward.func.value) if isinstance(node, ast.Name)]:
        given = [value for target, value in scope.assignments if isinstance(target, ast.Name) and target.id == loss]
        computed = [value for value in given if _is_computed_of_others(value, loss)]
        regions = [_float16_around(value, facts, around) for value in computed]
        if regions and None not in regions:
            return regions[0]
    return None


def _is_computed_of_others(value: ast.expr, loss: str) -> bool:
    """Whether a call gives a loss its value, and not only another form of what it is already."""
    parts = list(ast.walk(value))
    read = {part.id for part in parts if isinstance(part, ast.Name)}
    return any(isinstance(part, ast.Call) for part in parts) and bool(read - {loss})


def _float16_around(node: ast.expr, facts: FileFacts, around: Surroundings) -> ast.Call | None:
    """The innermost ``with`` of autocast around a node, if that is in float16 and may be on."""
    program = facts.training.program
    for ancestor in around.ancestors(node):
        if isinstance(ancestor, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return None
        for item in ancestor.items if isinstance(ancestor, ast.With) else ():
            call = item.context_expr
            if isinstance(call, ast.Call) and is_autocast(program.name(call.func)):
                return call if is_of_float16(call, program) and not switched_off(call) else None
    return None
