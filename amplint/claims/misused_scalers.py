"""What a GradScaler is asked for that it does not have, and scalers that are off where float16 needs one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.caught import is_caught
from amplint.claims.region_dtypes import is_of_float16
from amplint.frozen import dataclass
from amplint.infer.flow.training.paths import switched_off
from amplint.infer.flow.training.roles import Role, is_autocast, is_scaler
from amplint.infer.torch_model.signatures import measured_in, scaler_methods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.flow.training.program import Place, Scope
    from amplint.infer.state.facts import FileFacts


@dataclass(frozen=True, slots=True)
class RefusedUse:
    """A call that a scaler refuses, why, and whether what is called is a scaler by all that the file says."""

    call: ast.Call
    message: str
    certain: bool = True


def refused_uses(facts: FileFacts) -> Iterator[RefusedUse]:
    """Calls of a scaler itself, of public methods that it lacks, and of its methods with arguments they do not take."""
    for scope in facts.training.program.scopes if facts.torch_version >= measured_in() else ():
        for call in scope.calls:
            found = _of_method(call, scope, facts) or _of_object(call, scope, facts)
            if found is not None and not is_caught(facts.source, facts.span(call)):
                yield found


def _of_method(call: ast.Call, scope: Scope, facts: FileFacts) -> RefusedUse | None:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr.startswith("_"):
        return None
    if not _is_made_by_torch(func.value, scope, facts):
        return None
    method = scaler_methods().get(func.attr)
    if method is None:
        return RefusedUse(call, f"a GradScaler has no `{func.attr}`: this call raises AttributeError")
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    refusal = method.refusal(len(call.args), [k.arg for k in call.keywords if k.arg is not None], unseen=False)
    return RefusedUse(call, f"GradScaler.{func.attr} {refusal}: this call raises TypeError") if refusal else None


def _of_object(call: ast.Call, scope: Scope, facts: FileFacts) -> RefusedUse | None:
    if not isinstance(call.func, ast.Name | ast.Attribute):
        return None
    message = "a GradScaler cannot be called, this raises TypeError: call its scale()"
    if _is_made_by_torch(call.func, scope, facts):
        return RefusedUse(call, message)
    program = facts.training.program
    place = program.place(call.func, scope)
    if place is None or any(thing.role is not Role.SCALER for thing in facts.training.roles.things.get(place, ())):
        return None
    scales = any(facts.training.roles.scales(other, scope) == place for other in scope.calls)
    ran_back = any(
        isinstance(other.func, ast.Attribute) and other.func.attr == "backward" and other.func.value is call
        for other in scope.calls
    )
    return RefusedUse(call, message, certain=False) if scales and ran_back else None


def _is_made_by_torch(node: ast.expr, scope: Scope, facts: FileFacts) -> bool:
    """Whether all that a variable or an attribute is given is a scaler of torch's own class."""
    program = facts.training.program
    place = program.place(node, scope)
    things = facts.training.roles.things.get(place, ()) if place is not None else ()
    return bool(things) and all(
        thing.role in (Role.SCALER, Role.IDLE_SCALER)
        and isinstance(thing.node, ast.Call)
        and is_scaler(program.name(thing.node.func))
        for thing in things
    )


def scaled_twice(facts: FileFacts) -> Iterator[ast.Call]:
    """``scaler.scale(scaler.scale(loss))``: the scaler divides by its scale once."""
    for scope in facts.training.program.scopes:
        for call in scope.calls:
            scaler = scaling(call, scope, facts)
            inner = call.args[0] if scaler is not None else None
            if isinstance(inner, ast.Call) and scaling(inner, scope, facts) == scaler:
                yield call


def scaling(call: ast.Call, scope: Scope, facts: FileFacts) -> Place | None:
    """The scaler by which a call scales one thing."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "scale" or len(call.args) != 1:
        return None
    return facts.training.roles.scaler(func.value, scope)


def idle_beside_float16(facts: FileFacts) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Scalers that are made switched off, scale a loss all the same, and are the only ones of a file whose every
    autocast region is in float16: each with such a region."""
    roles, program = facts.training.roles, facts.training.program
    made = {id(t.node): t for things in roles.things.values() for t in things if isinstance(t.node, ast.Call)}
    if any(thing.role in (Role.SCALER, Role.SHARDED_SCALER) for thing in made.values()):
        return
    regions = [
        reference.call
        for reference in facts.references
        if reference.call is not None and is_autocast(reference.name) and not switched_off(reference.call)
    ]
    if not regions or not all(is_of_float16(call, program) for call in regions):
        return
    for place, things in roles.things.items():
        idle = [thing.node for thing in things if thing.role is Role.IDLE_SCALER]
        scales = any(roles.scales(call, scope) == place for scope in program.scopes for call in scope.calls)
        if len(idle) == 1 and isinstance(idle[0], ast.Call) and scales:
            yield idle[0], regions[0]
