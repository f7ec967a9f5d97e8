"""Following the paths of a training step through branches, loops and helpers of the same file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.flow.training.assumed import Assumptions
from amplint.infer.flow.training.events import Events
from amplint.infer.flow.training.program import own_children
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Around, Moment, State
from amplint.infer.syntax.control import LOOPS, Control, Followed, Rounds
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.infer.flow.training.program import ClassScope, Program, Scope
    from amplint.infer.flow.training.roles import Roles
    from amplint.infer.flow.training.steps import Event
    from amplint.infer.syntax.control import Loop

MAX_STATES = 80
"""Paths that are told apart at one point; with more, what was assumed on them is forgotten."""
MAX_DEPTH = 4
"""Helpers followed into each other."""
MAX_STATEMENTS = 20_000
"""Statements run for one file."""

States = frozenset[State]


class _Run(Followed[States]):
    """A function that runs, in all states in which the current statement is reached."""

    region: Around | None = None
    """The autocast region around, if it is not switched off."""
    loops: tuple[ast.AST, ...] = ()
    tests: tuple[ast.expr, ...] = ()

    def __init__(self, paths: Paths, scope: Scope, states: States, caller: _Run | None) -> None:
        super().__init__()
        self.paths, self.scope, self.live, self.leaves = paths, scope, states, []
        if caller is not None:
            self.catches, self.region = caller.catches, caller.region

    def managed(self) -> Around | None:
        return self.region

    def set_back(self, managed: Around | None) -> None:
        self.region = managed

    def met(self, *points: States) -> States:
        return self.paths.told_apart(frozenset().union(*points))


class Paths(Control[_Run]):
    """Runs the functions of a file that nothing else in it runs, and notes each event with the states it is met in."""

    def __init__(self, program: Program, roles: Roles) -> None:
        super().__init__()
        self.program = program
        self.roles = roles
        self.events = Events(program, roles)
        self.moments: dict[int, Moment] = {}
        self._active: list[Scope] = []
        self._object: ClassScope | None = None
        """The class of the object whose method runs, which may derive from the one that has the method."""
        self._budget = MAX_STATEMENTS
        self._blurred = False
        self._assumptions = Assumptions()
        self._quiet: dict[tuple[int, int], bool] = {}
        self._speaking: dict[tuple[int, int], list[ast.Call | ast.IfExp]] = {}
        """By node and by the class of the object whose method runs."""
        self._matters = self._interesting()
        entered = {id(s) for scope in program.scopes if id(scope) in self._matters for s in self._called(scope)}
        for scope in program.scopes:
            if id(scope) in self._matters and id(scope) not in entered:
                self._blurred = False
                self._object = self.program.class_around(scope)
                self._function(scope, frozenset({State()}))

    # ---- which functions there are to run -----------------------------------------------------------------------

    def _interesting(self) -> set[int]:
        """Functions with an event in them or in what they call."""
        found = {id(scope) for scope in self.program.scopes if any(self.events.of(c, scope) for c in scope.calls)}
        for _ in range(MAX_DEPTH):
            more = {
                id(scope)
                for scope in self.program.scopes
                if id(scope) not in found and any(id(called) in found for called in self._called(scope))
            }
            if not more:
                break
            found |= more
        return found

    def _called(self, scope: Scope) -> list[Scope]:
        called = (self.program.callee(call, scope) for call in scope.calls)
        return [callee for callee in called if callee is not None and callee is not scope]

    def _callee(self, node: ast.AST, scope: Scope) -> Scope | None:
        """What a call runs: of the object that runs, what its own class has of that name."""
        if not isinstance(node, ast.Call):
            return None
        callee, own, func = self.program.callee(node, scope), self._object, node.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name) or own is None:
            return callee
        inherited = callee is not None and callee.owner is not None and own.derives(callee.owner)
        return own.method(func.attr) if inherited else callee

    # ---- running ------------------------------------------------------------------------------------------------

    def _function(
        self, scope: Scope, states: States, caller: _Run | None = None, call: ast.Call | None = None
    ) -> States:
        """The states that a function leaves."""
        if scope in self._active or len(self._active) > MAX_DEPTH:
            return states
        run = _Run(self, scope, states, caller)
        for decorator in getattr(scope.node, "decorator_list", ()):
            self._region(run, decorator, scope.parent or scope)
        if caller is not None and call is not None:
            self._assumptions.passed(call, caller.scope, scope)
        self._active.append(scope)
        self.run(run, scope.body)
        self._active.pop()
        return run.met(run.live, *run.leaves or ())

    def run(self, f: _Run, body: Sequence[ast.stmt]) -> None:
        """Run the statements that have an event, run one or leave their block."""
        for statement in body:
            self._budget -= 1
            if self._budget < 0:
                return
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._follow(f, statement)

    def _follow(self, f: _Run, statement: ast.stmt) -> None:
        key = id(statement), id(self._object)
        quiet = self._quiet.get(key)
        if quiet is None:
            quiet = not any(self._speaks(inner, f.scope) for inner in ast.walk(statement))
            self._quiet[key] = quiet
        if quiet or isinstance(statement, LOOPS):
            self._forget(f, statement)
        if quiet:
            return
        loops, tests = f.loops, f.tests
        if isinstance(statement, LOOPS):
            f.loops = (*loops, statement)
        super().run(f, (statement,))
        f.loops, f.tests = loops, tests
        if isinstance(statement, LOOPS):
            self._forget(f, statement)

    def _speaks(self, node: ast.AST, scope: Scope) -> bool:
        if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Assert):
            return True
        if not isinstance(node, ast.Call):
            return False
        if self.events.of(node, scope):
            return True
        callee = self._callee(node, scope)
        return callee is not None and id(callee) in self._matters

    def _expressions(self, f: _Run, node: ast.AST) -> None:
        """What happens in a statement's own expressions, or in one expression: innermost first."""
        for part in self._parts(node, f.scope):
            if isinstance(part, ast.IfExp):
                self._choice(f, part)
                continue
            for event in self.events.of(part, f.scope):
                self._happen(f, event)
            callee = self._callee(part, f.scope)
            if callee is not None and id(callee) in self._matters:
                f.live = self._function(callee, f.live, f, part)

    def _parts(self, node: ast.AST, scope: Scope) -> list[ast.Call | ast.IfExp]:
        """The calls in an expression that are events or run one, and the choices between such, innermost first."""
        key = id(node), id(self._object)
        found = self._speaking.get(key)
        if found is None:
            found = self._speaking[key] = []
            if isinstance(node, ast.IfExp) and any(self._speaks(inner, scope) for inner in ast.walk(node)):
                found.append(node)
                return found
            for child in own_children(node):
                found += self._parts(child, scope)
            if isinstance(node, ast.Call) and self._speaks(node, scope):
                found.append(node)
        return found

    def _choice(self, f: _Run, node: ast.IfExp) -> None:
        """``scaler.scale(loss).backward() if amp else loss.backward()``: either, by the test."""
        tests, no = f.tests, self.test(f, node.test)
        f.tests = (*tests, node.test)
        self._expressions(f, node.body)
        f.tests, yes, f.live = tests, f.live, no
        self._expressions(f, node.orelse)
        f.live = f.met(yes, f.live)

    def _happen(self, f: _Run, event: Event) -> None:
        moment = self.moments.get(id(event.node))
        if moment is None:
            moment = self.moments[id(event.node)] = Moment(event, set(), [], loops=f.loops, tests=f.tests)
        moment.states |= f.live
        moment.blurred |= self._blurred
        moment.regions.append(f.region)
        f.live = frozenset(after for state in f.live for after in state.after(event))

    def told_apart(self, states: States) -> States:
        """As many states as are told apart."""
        if len(states) <= MAX_STATES:
            return states
        self._blurred = True
        return _blurred(states)

    # ---- statements ---------------------------------------------------------------------------------------------

    def plain(self, f: _Run, statement: ast.stmt) -> None:
        self._expressions(f, statement)
        self._forget(f, statement)
        if isinstance(statement, ast.Assert):
            f.live = self._assumptions.came_out(f.live, statement.test, True, f.scope)

    def test(self, f: _Run, test: ast.expr) -> States:
        self._expressions(f, test)
        no = self._assumptions.came_out(f.live, test, False, f.scope)
        f.live = self._assumptions.came_out(f.live, test, True, f.scope)
        return no

    def until(self, f: _Run, test: ast.expr) -> States:
        """How the test of a ``while`` comes out says nothing of the next time."""
        self._expressions(f, test)
        found: States = super().test(f, test)
        return found

    def choose(self, f: _Run, statement: ast.If) -> tuple[States, None]:
        no = self.test(f, statement.test)
        f.tests = (*f.tests, statement.test)
        return no, None

    def rounds(self, f: _Run, statement: ast.For | ast.AsyncFor) -> Rounds:
        """A ``for`` is taken to have one pass at least: loops over optimizers are not empty."""
        self._expressions(f, statement.iter)
        return Rounds(some=True)

    def back(self, f: _Run, statement: Loop) -> None:
        """What a pass assumed of what the body changes says nothing of the next one."""
        self._forget(f, statement)

    def bind(self, f: _Run, target: ast.expr, item: object) -> None:
        self._forget(f, target)

    def widened(self, f: _Run, first: States, before: States, after: States, number: int) -> States:
        return _blurred(after)

    def enter(self, f: _Run, item: ast.withitem) -> bool:
        made = item.context_expr
        self._expressions(f, made)
        self._region(f, made, f.scope)
        return isinstance(made, ast.Call) and self.program.name(made.func) == "contextlib.suppress"

    def _region(self, f: _Run, expression: ast.expr, scope: Scope) -> None:
        """Note the autocast region that a context manager or decorator opens."""
        things = self.roles.of(expression, scope)
        made = [thing for thing in things if thing.role in (Role.AUTOCAST, Role.AUTOCAST_MAKER)]
        if made:
            enabled = [thing for thing in made if not switched_off(thing.node)]
            certain = len(enabled) == len(things) and all(isinstance(t.node, ast.Call) for t in enabled)
            f.region = Around(expression, certain) if enabled else None

    def subject(self, f: _Run, statement: ast.Match) -> None:
        self._expressions(f, statement.subject)

    def may_raise(self, f: _Run, node: ast.stmt | ast.expr) -> None:
        """A step that fails half way is no step: handlers see what was before the body, or done in all of it."""

    def tried(self, f: _Run, statement: ast.Try) -> None:
        own = f.catches[-1:] if statement.handlers else ()
        for catch in own:
            catch.note(f)
        super().tried(f, statement)
        for catch in own:
            catch.note(f)

    def _forget(self, f: _Run, node: ast.AST) -> None:
        f.live = self._assumptions.forget(f.live, node)


def _blurred(states: States) -> States:
    return frozenset(replace(state, assumed=frozenset()) for state in states)


def switched_off(node: ast.expr | None) -> bool:
    """Whether a call that makes an autocast region says ``enabled=False``."""
    if not isinstance(node, ast.Call):
        return False
    return any(k.arg == "enabled" and isinstance(k.value, ast.Constant) and not k.value.value for k in node.keywords)
