"""The state of a scaler that is kept where the scaler is switched off."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.training.roles import Role

from ._asked_for import mentioned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.facts import FileFacts
    from amplint.infer.training.program import Place, Scope

    from ._surroundings import Surroundings


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
