"""Scalers that are made where, or for what, none is needed, and the state that is kept of one that is off."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.asked_for_dtype import mentioned
from amplint.claims.region_dtypes import region_dtype
from amplint.claims.surroundings import FunctionNode
from amplint.infer.flow.training.paths import switched_off
from amplint.infer.flow.training.roles import Role, is_autocast, is_scaler
from amplint.infer.flow.training.steps import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.flow.training.program import Place, Scope
    from amplint.infer.state.facts import FileFacts


def made_anew(facts: FileFacts, around: Surroundings) -> Iterator[ast.Call]:
    """Scalers that are made in the innermost loop that steps with them, but for a loop that makes the optimizer too:
    each of its passes is a training of its own. One that a test of the pass, or of the scaler, decides about may be
    made once."""
    for moment in facts.training.moments_of(Step.SCALER_STEP):
        if not moment.loops or moment.event.scaler is None:
            continue
        loop = moment.loops[-1]
        body = {id(node) for node in ast.walk(loop)}
        if _is_made_in(body, moment.event.optimizer, facts):
            continue
        for thing in facts.training.roles.things.get(moment.event.scaler, ()):
            made = thing.node if thing.role is Role.SCALER and isinstance(thing.node, ast.Call) else None
            if made is not None and id(made) in body and not _is_of_some_passes(made, loop, body, around):
                yield made


def _is_of_some_passes(made: ast.Call, loop: ast.AST, body: set[int], around: Surroundings) -> bool:
    """Whether a test within a loop decides about a scaler by what the loop sets: its own place too, or by name."""
    parts = (node for node in ast.walk(loop) if isinstance(node, ast.Name | ast.Attribute))
    changed = set[str]()
    for node in (node for node in parts if isinstance(node.ctx, ast.Store)):
        changed |= {ast.unparse(node), node.attr} if isinstance(node, ast.Attribute) else {node.id}
    tests = (test for test, _ in around.tests(made) if id(test) in body)
    asked = (part for test in tests for part in ast.walk(test) if isinstance(part, ast.expr))
    texts = (str(part.value) if isinstance(part, ast.Constant) else ast.unparse(part) for part in asked)
    return not changed.isdisjoint(texts)


def _is_made_in(body: set[int], optimizer: Place | None, facts: FileFacts) -> bool:
    """Whether some part of a loop gives the optimizer its value."""
    program = facts.training.program
    return optimizer is not None and any(
        id(target) in body and program.place(target, scope) == optimizer
        for scope in program.scopes
        for target, _ in scope.assignments
    )


def for_bfloat16(facts: FileFacts, around: Surroundings) -> Iterator[ast.Call]:
    """Scalers that are always enabled, where all autocast regions of their function or class are in bfloat16, or all of
    the file where those have none."""
    program = facts.training.program
    if not facts.training.moments_of(Step.SCALER_STEP):
        return
    dtypes: dict[int, list[str | None]] = {}
    for reference in facts.references:
        call = reference.call
        if call is not None and is_autocast(reference.name) and not switched_off(call):
            dtypes.setdefault(_owner(call, around), []).append(region_dtype(call, program))
    everywhere = [name for names in dtypes.values() for name in names]
    for reference in facts.references:
        call = reference.call
        if call is None or not is_scaler(reference.name):
            continue
        beside = dtypes.get(_owner(call, around), everywhere)
        if not beside or any(name != "torch.bfloat16" for name in beside):
            continue
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        if len(call.args) <= 1 and not starred and all(k.arg not in (None, "enabled") for k in call.keywords):
            yield call


def _owner(node: ast.AST, around: Surroundings) -> int:
    """Identifies the outermost function or class around a node, 0 for the module."""
    owners = [id(a) for a in around.ancestors(node) if isinstance(a, FunctionNode | ast.ClassDef)]
    return owners[-1] if owners else 0


def kept_while_off(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.Call, ast.expr, ast.expr]]:
    """Calls that keep a scaler's state in bfloat16 too, where the scaler is off: the call, the test that lets it run,
    and what the scaler was told for ``enabled``.

    The scaler is on for float16 alone, by its own ``enabled``; the test reads a variable that some assignment sets by,
    or under, a test for bfloat16.
    """
    training = facts.training
    scalers = {place: enabled for place in training.roles.things if (enabled := _enabled(place, facts)) is not None}
    for scope in training.program.scopes if scalers else ():
        for call in scope.calls:
            place = _kept(call, scope, facts, scalers)
            if place is None:
                continue
            enabled = scalers[place]
            made_in = next((s for s in training.program.scopes if s.node is around.function(enabled)), scope)
            read = [enabled, *(value for _, value in _assigned(enabled, made_in, facts))]
            named = {dtype for value in read for dtype in mentioned(value, around)}
            if "float16" not in named or "bfloat16" in named:
                continue
            tests = [t for t, answer in around.tests(call) if answer or "bfloat16" in mentioned(t, around)]
            meant = " ; ".join(map(ast.unparse, read))
            if any(ast.unparse(part) in meant or "is_enabled" in ast.unparse(part) for part in _read(tests)):
                continue
            wider = next((t for t in tests if _allows_bfloat16(t, scope, facts, around)), None)
            if wider is not None:
                yield call, wider, enabled


def _enabled(place: Place, facts: FileFacts) -> ast.expr | None:
    """What the only scaler made at a place is told for ``enabled``, where that is no constant."""
    made = [
        t.node for t in facts.training.roles.things[place] if t.role is Role.SCALER and isinstance(t.node, ast.Call)
    ]
    given = [keyword.value for call in made for keyword in call.keywords if keyword.arg == "enabled"]
    return given[0] if len(made) == len(given) == 1 and not isinstance(given[0], ast.Constant) else None


def _kept(call: ast.Call, scope: Scope, facts: FileFacts, scalers: dict[Place, ast.expr]) -> Place | None:
    """The scaler whose state a call takes or restores, or which it hands on under a name."""
    program = facts.training.program
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("state_dict", "load_state_dict"):
        place = program.place(func.value, scope)
        return place if place in scalers else None
    if not any(isinstance(a, ast.Constant) and "scaler" in str(a.value) for a in call.args):
        return None
    return next((p for a in call.args if (p := program.place(a, scope)) in scalers), None)


def _assigned(node: ast.expr, scope: Scope, facts: FileFacts) -> list[tuple[ast.expr, ast.expr]]:
    """The assignments, target and value, to what an expression reads, in its function and the methods beside it."""
    program = facts.training.program
    wanted = {program.place(part, scope) for part in _read([node])} - {None}
    beside = [s for s in program.scopes if s is scope or (scope.owner is not None and s.owner is scope.owner)]
    return [(t, v) for s in beside for t, v in s.assignments if program.place(t, s) in wanted]


def _read(tests: list[ast.expr]) -> list[ast.expr]:
    """The variables and attributes that tests read, the longest of each chain."""
    found: list[ast.expr] = []
    inner: set[int] = set()
    for test in tests:
        for node in ast.walk(test):
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
                found.append(node)
                inner.update(id(child) for child in ast.walk(node))
    return found


def _allows_bfloat16(test: ast.expr, scope: Scope, facts: FileFacts, around: Surroundings) -> bool:
    """Whether a test reads a variable that is set by a test for bfloat16, or under one."""
    for target, value in _assigned(test, scope, facts):
        reasons = [value, *(t for t, answer in around.tests(target) if answer)]
        if any("bfloat16" in mentioned(reason, around) for reason in reasons):
            return True
    return False
