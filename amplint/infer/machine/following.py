"""The control flow of functions, with what each variable holds in each scenario.

A scenario that reaches only one of two branches sees only that branch's values.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from amplint.infer.lattice.values import UNKNOWN, Tensor
from amplint.infer.machine.answers import ask, branches_left
from amplint.infer.machine.guards import split, usually
from amplint.infer.machine.handling import entered
from amplint.infer.machine.looping import added_up, grows, rounds_of, unknown_behind
from amplint.infer.machine.matching import capture
from amplint.infer.machine.narrowing import narrow
from amplint.infer.machine.refusals import refused
from amplint.infer.machine.statements import HANDLERS, assign
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.infer.state.meeting import forgotten, unlike
from amplint.infer.syntax.control import MAX_PASSES, MAX_WIDENED, Control, Rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.infer.lattice.values import Value
    from amplint.infer.state.activation import Env


class _Following(Control[Frame]):
    """Follows frames."""

    def __init__(self) -> None:
        super().__init__()
        self.ways |= {kind: way for kind, way in HANDLERS.items() if kind not in (ast.Return, ast.Raise)}

    def plain(self, frame: Frame, statement: ast.stmt) -> None:
        handler = HANDLERS.get(type(statement))
        if handler is not None:
            handler(frame, statement)

    def bind(self, frame: Frame, target: ast.expr, item: Value | None) -> None:
        assign(frame, target, item or UNKNOWN)

    def test(self, frame: Frame, test: ast.expr) -> Env:
        return _where(frame, test, *split(frame, test))

    def choose(self, frame: Frame, statement: ast.If) -> tuple[Env, list[ast.stmt] | None]:
        """An unusual branch is run, but the program does not go on with what it leaves."""
        yes, no = split(frame, statement.test)
        if refused(frame, statement, yes, no):
            yes = no = frame.live
        usual = usually(frame, statement.test) if yes and no else None
        ask(frame, statement.test)
        if not frame.live:
            yes = no = 0
        unusual = None if usual is None else statement.orelse if usual else statement.body
        return _where(frame, statement.test, yes, no), unusual

    def aside(self, frame: Frame, body: list[ast.stmt]) -> dict[str, Value]:
        """What it sets of the object that is constructed is kept apart."""
        ways: tuple[list[Any], ...] = (frame.returns, frame.breaks, frame.continues)
        counts, instance = [len(way) for way in ways], frame.constructing
        before = dict(instance.attributes) if instance is not None else {}
        self.run(frame, body)
        for way, count in zip(ways, counts, strict=True):
            del way[count:]
        frame.stop()
        if instance is None:
            return {}
        left, instance.attributes = instance.attributes, before
        return left

    def chosen(self, frame: Frame, statement: ast.If, left: dict[str, Value] | None, yes: Env, no: Env) -> None:
        if frame.constructing is not None:
            for name, value in left.items() if left else ():
                frame.constructing.attributes.setdefault(name, value)
        branches_left(frame, statement.test, yes.variables, yes.live, no.variables, no.live)

    def changes(self, frame: Frame) -> int:
        return frame.session.mutations

    def differs(self, before: Env, after: Env, number: int) -> bool:
        if before.live != after.live or unlike(before, after, known=number >= MAX_PASSES):
            return True
        return forgotten(before, after)

    def met_again(self, frame: Frame, head: Env, end: Env) -> Env:
        """What holds where a pass begins, from before it and from its end."""
        found = frame.met(head, _perhaps(head, end))
        sums = {name: added_up(head.variables.get(name), value) for name, value in end.variables.items()}
        variables = found.variables | {name: value for name, value in sums.items() if value is not None}
        return found._replace(variables=variables)

    def widened(self, frame: Frame, first: Env, before: Env, after: Env, number: int) -> Env:
        """What still changes is unknown; at last everything that the loop changes."""
        changed = unlike(before, after, known=number >= MAX_PASSES)
        if number == MAX_PASSES + MAX_WIDENED - 2:
            changed += unlike(first, after)
        return after._replace(variables={**after.variables, **dict.fromkeys(changed, UNKNOWN)})

    def rounds(self, frame: Frame, statement: ast.For | ast.AsyncFor) -> Rounds:
        return rounds_of(frame, statement)

    def again(self, frame: Frame, statement: ast.For | ast.AsyncFor, rounds: Rounds) -> Rounds:
        return rounds_of(frame, statement) if grows(statement) else rounds

    def skipped(self, frame: Frame, before: Env, after: Env) -> Env:
        """What a pass leaves unknown is unknown, and a tensor is what a pass leaves where loops are never idle."""
        found = frame.met(before, _perhaps(before, after))
        if not before.live or not after.live:
            return found
        left = {name: unknown_behind(found.variables.get(name), value) for name, value in after.variables.items()}
        if not frame.session.assumptions.idle:
            tensors = {name for name, value in before.variables.items() if isinstance(value, Tensor)}
            left |= {n: v for n, v in after.variables.items() if n in tensors and isinstance(v, Tensor)}
        changed = {name: value for name, value in left.items() if value is not None}
        return found._replace(variables={**found.variables, **changed})

    def enter(self, frame: Frame, item: ast.withitem) -> bool:
        return entered(frame, item)

    def subject(self, frame: Frame, statement: ast.Match) -> Value:
        return evaluate(frame, statement.subject)

    def capture(self, frame: Frame, pattern: ast.pattern, subject: Value) -> None:
        capture(frame, pattern, subject)

    def parted(self, frame: Frame, paths: Sequence[tuple[int, ...]]) -> None:
        frame.session.recorder.branches_met(frame, *paths)

    def caught(self, frame: Frame, handler: ast.ExceptHandler) -> None:
        if handler.name:
            frame.bind(handler.name, UNKNOWN)


def _perhaps(before: Env, after: Env) -> Env:
    """The end of a pass over a loop that may not be run: what raises in it does not keep anyone from what is behind."""
    return after._replace(raised=after.raised & before.raised)


def _where(frame: Frame, test: ast.expr, yes: int, no: int) -> Env:
    """Go on in the scenarios in which a test can be true; gives where it can be false."""
    variables = frame.variables
    frame.live, frame.variables = no, variables.copy()
    narrow(frame, test, False)
    refused = frame.end()
    frame.live, frame.variables = yes, variables
    narrow(frame, test, True)
    return refused


execute = _Following().run
