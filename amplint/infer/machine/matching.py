"""``match`` statements: the cases in order, each from where those before it do not match."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.joining import element_of
from amplint.infer.lattice.values import UNKNOWN, Sequence, Value
from amplint.infer.machine.guards import narrow, split
from amplint.infer.state.activation import Env
from amplint.infer.state.dispatch import evaluate, execute
from amplint.infer.state.meeting import environment, go_on, met
from amplint.infer.syntax.bodies import once_for_each_node
from amplint.infer.syntax.patterns import takes_any

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame


def matched(frame: Frame, statement: ast.Match) -> None:
    """Run a ``match`` statement."""
    subject = evaluate(frame, statement.subject)
    block, path = frame.block, frame.path
    rest, done = environment(frame), Env(0, {})
    frame.branches += 1
    paths = []
    for case, test in zip(statement.cases, _tests(statement), strict=True):
        if not rest.live:
            break
        go_on(frame, rest)
        frame.block, frame.path = id(case.body), (*path, id(case.body))
        yes, no = split(frame, test) if test is not None else (frame.live, 0 if takes_any(case.pattern) else frame.live)
        here = environment(frame)
        frame.live = no
        if test is not None:
            narrow(frame, test, False)
        rest = environment(frame)
        go_on(frame, Env(yes, here.variables))
        if test is not None:
            narrow(frame, test, True)
        _capture(frame, case.pattern, subject)
        if case.guard is not None:
            rest = met(frame.session, rest, _guard(frame, case.guard))
        paths.append(frame.path)
        execute(frame, case.body)
        done = met(frame.session, done, Env(frame.live, frame.variables))
    frame.branches -= 1
    frame.block, frame.path = block, path
    if not rest.live and len(paths) == 2:
        frame.session.recorder.branches_met(frame, *paths)
    frame.live, frame.variables = met(frame.session, done, rest)


def _guard(frame: Frame, guard: ast.expr) -> Env:
    """Go on where a guard lets a case run; gives where it does not."""
    if frame.catches:
        frame.may_raise()
    yes, no = split(frame, guard)
    here = environment(frame)
    frame.live = no
    narrow(frame, guard, False)
    refused = environment(frame)
    go_on(frame, Env(yes, here.variables))
    narrow(frame, guard, True)
    return refused


@once_for_each_node
def _tests(statement: ast.Match) -> list[ast.expr | None]:
    """Each pattern as the comparison that an ``if`` would make; None for any other, and of a subject with a call."""
    plain = statement.subject
    while isinstance(plain, ast.Attribute):
        plain = plain.value
    compared = [_compared(case.pattern) if isinstance(plain, ast.Name) else None for case in statement.cases]
    return [_nowhere(ast.Compare(statement.subject, [c[0]], [c[1]])) if c is not None else None for c in compared]


def _compared(pattern: ast.pattern) -> tuple[ast.cmpop, ast.expr] | None:
    """The comparison that a pattern makes with its subject; None for a pattern that does something else."""
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _compared(pattern.pattern)
    if isinstance(pattern, ast.MatchValue):
        return ast.Eq(), pattern.value
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Is(), _nowhere(ast.Constant(pattern.value))
    if isinstance(pattern, ast.MatchOr) and all(isinstance(part, ast.MatchValue) for part in pattern.patterns):
        values = [part.value for part in pattern.patterns if isinstance(part, ast.MatchValue)]
        return ast.In(), _nowhere(ast.Tuple(values, ast.Load()))
    return None


def _nowhere(node: ast.expr) -> ast.expr:
    """A node that the source does not have."""
    node.lineno = node.col_offset = node.end_lineno = node.end_col_offset = 0
    return node


def _capture(frame: Frame, pattern: ast.pattern, subject: Value) -> None:
    """Bind the names of a pattern that matched."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            _capture(frame, pattern.pattern, subject)
        if pattern.name is not None:
            frame.bind(pattern.name, subject)
    elif isinstance(pattern, ast.MatchSequence):
        _capture_items(frame, pattern, subject)
    else:
        for node in ast.walk(pattern):
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                frame.bind(name, UNKNOWN)


def _capture_items(frame: Frame, pattern: ast.MatchSequence, subject: Value) -> None:
    items = subject.items if isinstance(subject, Sequence) else None
    element = element_of(frame.session, subject) if isinstance(subject, Sequence) else None
    starred = any(isinstance(part, ast.MatchStar) for part in pattern.patterns)
    for number, part in enumerate(pattern.patterns):
        if isinstance(part, ast.MatchStar):
            if part.name is not None:
                frame.bind(part.name, UNKNOWN if element is None else Sequence(None, element, True))
        elif items is not None and not starred and len(items) == len(pattern.patterns):
            _capture(frame, part, items[number])
        else:
            _capture(frame, part, UNKNOWN if element is None else element)
