"""Following the paths of a training step through branches, loops and helpers of the same file."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.infer.flow.training.events import Events
from amplint.infer.flow.training.program import own_children
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Around, Moment, State
from amplint.infer.syntax.control import LOOPS, Control, Followed, Rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.infer.flow.training.program import Place, Program, Scope
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

    live: States
    context: Around | None = None
    """The autocast region around, if it is not switched off."""
    loops: tuple[ast.AST, ...] = ()
    tests: tuple[ast.expr, ...] = ()

    def __init__(self, paths: Paths, scope: Scope, states: States, caller: _Run | None) -> None:
        super().__init__()
        self.paths, self.scope, self.live, self.leaves = paths, scope, states, []
        if caller is not None:
            self.catches, self.context = caller.catches, caller.context

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
        self._budget = MAX_STATEMENTS
        self._blurred = False
        self._aliases: dict[tuple[int, str], str] = {}
        """Parameters of the helpers that run, by scope and name: what their callers call the same thing."""
        self._quiet: dict[int, bool] = {}
        self._matters = self._interesting()
        entered = {id(s) for scope in program.scopes if id(scope) in self._matters for s in self._called(scope)}
        for scope in program.scopes:
            if id(scope) in self._matters and id(scope) not in entered:
                self._blurred = False
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
            self._aliases.update(self._passed(call, caller.scope, scope))
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
        quiet = self._quiet.get(id(statement))
        if quiet is None:
            quiet = not any(self._speaks(inner, f.scope) for inner in ast.walk(statement))
            self._quiet[id(statement)] = quiet
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
        callee = self.program.callee(node, scope)
        return callee is not None and id(callee) in self._matters

    def _expressions(self, f: _Run, node: ast.AST) -> None:
        """What happens in a statement's own expressions, or in one expression: innermost first."""
        if isinstance(node, ast.IfExp) and any(self._speaks(inner, f.scope) for inner in ast.walk(node)):
            self._choice(f, node)
            return
        for child in own_children(node):
            self._expressions(f, child)
        if not isinstance(node, ast.Call):
            return
        for event in self.events.of(node, f.scope):
            self._happen(f, event)
        callee = self.program.callee(node, f.scope)
        if callee is not None and id(callee) in self._matters:
            f.live = self._function(callee, f.live, f, node)

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
        moment.regions.append(f.context)
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
            f.live = self._assumed(f, statement.test, True)

    def test(self, f: _Run, test: ast.expr) -> States:
        self._expressions(f, test)
        no = self._assumed(f, test, False)
        f.live = self._assumed(f, test, True)
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
            f.context = Around(expression, certain) if enabled else None

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

    # ---- tests --------------------------------------------------------------------------------------------------

    def _assumed(self, f: _Run, test: ast.expr, truth: bool) -> States:
        """The states in which a test can come out so."""
        return frozenset(s for state in f.live if (s := self._assume(state, test, truth, f.scope)) is not None)

    def _assume(self, state: State, test: ast.expr, truth: bool, scope: Scope) -> State | None:
        """The state in which a test came out so; None where what was assumed before says otherwise."""
        facts = conditions(test, truth)
        if facts is None:
            return None
        assumed = set(state.assumed)
        if isinstance(test, ast.BoolOp):
            facts.append((test, truth))
        for node, value in facts:
            key = self._key(node, scope)
            if (key, not value) in assumed:
                return None
            assumed.add((key, value))
        negated = conditions(test, not truth)
        if negated and len(negated) > 1:  # each part of what the test denies was assumed
            keys = [(self._key(node, scope), value) for node, value in negated]
            if all(key in assumed for key in keys):
                return None
        return replace(state, assumed=frozenset(assumed))

    def _key(self, node: ast.expr, scope: Scope) -> str:
        """A test as text, with its variables named by the function that made them, and the names that it reads."""
        copy = ast.parse(ast.unparse(node), mode="eval")
        names = [inner for inner in ast.walk(copy) if isinstance(inner, ast.Name)]
        words = " ".join(inner.id for inner in names)
        for inner in names:
            inner.id = self._canonical(inner.id, scope)
        return f"{ast.unparse(copy)} # {words}"

    def _canonical(self, name: str, scope: Scope) -> str:
        owner = scope.binding(name)
        if owner is None or name == owner.receiver:
            return name
        return self._aliases.get((id(owner), name), f"{name}_{id(owner)}")

    def _passed(self, call: ast.Call, caller: Scope, callee: Scope) -> dict[tuple[int, str], str]:
        """The parameters of a helper that are variables of its caller under another name."""
        given = list(zip((a.arg for a in callee.parameters()), call.args, strict=False))
        given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
        return {
            (id(callee), name): self._canonical(value.id, caller)
            for name, value in given
            if isinstance(value, ast.Name)
        }

    def _forget(self, f: _Run, node: ast.AST) -> None:
        if names := assigned_in(node):
            f.live = frozenset(_without(state, names) for state in f.live)


def _blurred(states: States) -> States:
    return frozenset(replace(state, assumed=frozenset()) for state in states)


def conditions(test: ast.expr, truth: bool) -> list[tuple[ast.expr, bool]] | None:
    """What a test's outcome says of its parts; None where it cannot come out so.

    ``a and b`` true says both; false says nothing of either, and stands as a whole. ``x is None`` and ``not x`` are
    turned into statements about ``x``.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return conditions(test.operand, not truth)
    if isinstance(test, ast.Constant):
        return [] if bool(test.value) is truth else None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is truth:
        parts = [conditions(value, truth) for value in test.values]
        known = [part for part in parts if part is not None]
        return [fact for part in known for fact in part] if len(known) == len(parts) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        op, right = test.ops[0], test.comparators[0]
        if isinstance(op, ast.Is | ast.Eq) and isinstance(right, ast.Constant) and right.value in (None, False):
            return [(test.left, not truth)]
        if isinstance(op, ast.IsNot | ast.NotEq) and isinstance(right, ast.Constant) and right.value in (None, False):
            return [(test.left, truth)]
        if isinstance(op, ast.NotEq):
            return [(ast.Compare(test.left, [ast.Eq()], test.comparators), not truth)]
    return [(test, truth)]


def assigned_in(node: ast.AST) -> frozenset[str]:
    """The names, and last names of attributes, that a statement binds."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            names.add(inner.id)
        elif isinstance(inner, ast.Attribute) and not isinstance(inner.ctx, ast.Load):
            names.add(inner.attr)
    return frozenset(names)


def _without(state: State, names: frozenset[str]) -> State:
    """Forget what was assumed of names that change, and what was done to the optimizers that they held."""
    if not names:
        return state
    assumed = frozenset((key, value) for key, value in state.assumed if not names & _words(key))
    unscaled = frozenset(pair for pair in state.unscaled if not _names(pair) & names)
    stepped = frozenset(pair for pair in state.stepped if not _names(pair) & names)
    if (assumed, unscaled, stepped) == (state.assumed, state.unscaled, state.stepped):
        return state
    return replace(state, assumed=assumed, unscaled=unscaled, stepped=stepped)


def _names(pair: tuple[Place, Place]) -> set[str]:
    return {part.removeprefix(".") for place in pair for part in place if isinstance(part, str)}


def _words(key: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in key).split())


def switched_off(node: ast.expr | None) -> bool:
    """Whether a call that makes an autocast region says ``enabled=False``."""
    if not isinstance(node, ast.Call):
        return False
    return any(k.arg == "enabled" and isinstance(k.value, ast.Constant) and not k.value.value for k in node.keywords)
