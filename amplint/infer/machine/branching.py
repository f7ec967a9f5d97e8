"""``if`` statements: branches run on copies of the variables and meet again lane by lane.

A scenario that reaches only one of two branches sees only that branch's values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplint.infer.machine.answers import ask, branches_left
from amplint.infer.machine.guards import narrow, split, usually
from amplint.infer.machine.refusals import refused
from amplint.infer.state.dispatch import execute
from amplint.infer.state.meeting import joined

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence as Items

    from amplint.infer.lattice.values import Value
    from amplint.infer.state.frame import Frame


def branch(frame: Frame, statement: ast.If) -> None:
    """Run both branches of an ``if``."""
    yes, no = split(frame, statement.test)
    if refused(frame, statement, yes, no):
        yes = no = frame.live
    usual = usually(frame, statement.test)
    ask(frame, statement.test)
    before, live, block, path = frame.variables, frame.live, frame.block, frame.path
    frame.branches += 1
    frame.live, frame.variables = yes, before.copy()
    frame.block = id(statement.body)
    frame.path = taken = (*path, id(statement.body)) if no else path
    narrow(frame, statement.test, True)
    unusually = _run(frame, statement.body, unusual=usual is False and bool(no))
    left_live, left = frame.live, frame.variables
    frame.live, frame.variables = no, before.copy()
    frame.block = id(statement.orelse)
    frame.path = other = (*path, id(statement.orelse)) if yes else path
    narrow(frame, statement.test, False)
    unusually |= _run(frame, statement.orelse, unusual=usual is True and bool(yes))
    frame.branches -= 1
    if frame.constructing is not None:
        for name, value in unusually.items():
            frame.constructing.attributes.setdefault(name, value)
    frame.block, frame.path = block, path
    frame.session.recorder.branches_met(frame, taken, other)
    right_live, right = frame.live, frame.variables
    frame.live, frame.variables = joined(frame.session, left_live, left, right_live, right)
    if not live:
        frame.live = 0
    branches_left(frame, statement.test, left, left_live, right, right_live)


def _run(frame: Frame, body: Items[ast.stmt], *, unusual: bool) -> dict[str, Value]:
    """Run one branch. The program does not go on with what an unusual one leaves: its attributes are handed back."""
    if not unusual:
        execute(frame, body)
        return {}
    ways: tuple[list[Any], ...] = (frame.returns, frame.returned, frame.breaks, frame.continues)
    counts, instance = [len(way) for way in ways], frame.constructing
    before = dict(instance.attributes) if instance is not None else {}
    execute(frame, body)
    for way, count in zip(ways, counts, strict=True):
        del way[count:]
    frame.live = 0
    if instance is None:
        return {}
    left, instance.attributes = instance.attributes, before
    return left
