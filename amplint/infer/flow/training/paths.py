"""Following the paths of a training step through branches, loops and helpers of the same file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from amplint.infer.flow.training.events import Events
from amplint.infer.flow.training.program import expressions
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Around, Moment, State
from amplint.infer.syntax.patterns import takes_any

if TYPE_CHECKING:
    from amplint.infer.flow.training.program import Place, Program, Scope
    from amplint.infer.flow.training.roles import Roles
    from amplint.infer.flow.training.steps import Event

MAX_STATES = 40
"""Paths that are told apart at one point; with more, what was assumed on them is forgotten."""
MAX_DEPTH = 4
"""Helpers followed into each other."""
MAX_STATEMENTS = 20_000
"""Statements run for one file."""

States = frozenset[State]
_TRIES: tuple[type[ast.Try], ...] = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(slots=True)
class _Exits:
    """The states that leave a block other than by its end."""

    breaks: set[State] = field(default_factory=set)
    continues: set[State] = field(default_factory=set)
    returns: set[State] = field(default_factory=set)
    raises: set[State] = field(default_factory=set)


class Paths:
    """Runs the functions of a file that nothing else in it runs, and notes each event with the states it is met in."""

    def __init__(self, program: Program, roles: Roles) -> None:
        self.program = program
        self.roles = roles
        self.events = Events(program, roles)
        self.moments: dict[int, Moment] = {}
        self._regions: list[Around | None] = []
        self._active: list[Scope] = []
        self._loops: list[tuple[ast.AST, frozenset[str]]] = []
        self._tests: list[ast.expr] = []
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
                self._run_function(scope, frozenset({State()}))

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

    def _run_function(self, scope: Scope, states: States, call: ast.Call | None = None) -> States:
        if scope in self._active or len(self._active) > MAX_DEPTH:
            return states
        self._active.append(scope)
        loops, self._loops = self._loops, []
        tests, self._tests = self._tests, []
        pushed = 0
        for decorator in getattr(scope.node, "decorator_list", ()):
            pushed += self._enter(decorator, scope.parent or scope)
        if call is not None:
            self._aliases.update(self._passed(call, self._active[-2], scope))
        exits = _Exits()
        left = self._run(scope.body, scope, states, exits)
        del self._regions[len(self._regions) - pushed :]
        self._active.pop()
        self._loops, self._tests = loops, tests
        return self._joined(left, exits.returns)

    def _run(self, body: list[ast.stmt], scope: Scope, states: States, exits: _Exits) -> States:
        for statement in body:
            if not states:
                break
            self._budget -= 1
            if self._budget < 0:
                return states
            states = self._statement(statement, scope, states, exits)
        return states

    def _statement(self, node: ast.stmt, scope: Scope, states: States, exits: _Exits) -> States:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return states
        if self._is_quiet(node, scope):
            return self._forget(states, node)
        if isinstance(node, ast.If):
            return self._branch(node, scope, self._expressions(node, scope, states), exits)
        if isinstance(node, _LOOPS):
            return self._loop(node, scope, self._expressions(node, scope, states), exits)
        if isinstance(node, ast.With | ast.AsyncWith):
            return self._with(node, scope, self._expressions(node, scope, states), exits)
        if isinstance(node, _TRIES):
            return self._try(node, scope, states, exits)
        if isinstance(node, ast.Match):
            return self._match(node, scope, self._expressions(node, scope, states), exits)
        states = self._forget(self._expressions(node, scope, states), node)
        if isinstance(node, ast.Return):
            exits.returns |= states
            return frozenset()
        if isinstance(node, ast.Raise):
            exits.raises |= states
            return frozenset()
        if isinstance(node, ast.Break):
            exits.breaks |= states
            return frozenset()
        if isinstance(node, ast.Continue):
            exits.continues |= states
            return frozenset()
        if isinstance(node, ast.Assert):
            return self._assumed(states, node.test, True, scope)
        return states

    def _is_quiet(self, node: ast.stmt, scope: Scope) -> bool:
        """Whether a statement has no event, runs none, and does not leave its block."""
        known = self._quiet.get(id(node))
        if known is None:
            known = not any(self._speaks(inner, scope) for inner in ast.walk(node))
            self._quiet[id(node)] = known
        return known

    def _speaks(self, node: ast.AST, scope: Scope) -> bool:
        if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.Assert):
            return True
        if not isinstance(node, ast.Call):
            return False
        if self.events.of(node, scope):
            return True
        callee = self.program.callee(node, scope)
        return callee is not None and id(callee) in self._matters

    def _expressions(self, node: ast.AST, scope: Scope, states: States) -> States:
        for inner in expressions(node):
            if not isinstance(inner, ast.Call):
                continue
            for event in self.events.of(inner, scope):
                states = self._happen(event, states)
            callee = self.program.callee(inner, scope)
            if callee is not None and id(callee) in self._matters:
                states = self._run_function(callee, states, inner)
        return states

    def _happen(self, event: Event, states: States) -> States:
        moment = self.moments.get(id(event.node))
        if moment is None:
            moment = Moment(event, set(), [], loops=tuple(n for n, _ in self._loops), tests=tuple(self._tests))
            self.moments[id(event.node)] = moment
        moment.states |= states
        moment.blurred |= self._blurred
        moment.regions.append(self._regions[-1] if self._regions else None)
        return frozenset(after for state in states for after in state.after(event))

    # ---- statements with blocks ---------------------------------------------------------------------------------

    def _branch(self, node: ast.If, scope: Scope, states: States, exits: _Exits) -> States:
        left: set[State] = set()
        for truth, body in ((True, node.body), (False, node.orelse)):
            taken = self._assumed(states, node.test, truth, scope)
            if taken:
                self._tests.append(node.test)
                left |= self._run(body, scope, taken, exits)
                self._tests.pop()
        return self._joined(left)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope, states: States, exits: _Exits) -> States:
        """Two passes over the body; a ``for`` is taken to have one at least: loops over optimizers are not empty."""
        names = assigned_in(node)
        self._loops.append((node, names))
        own = _Exits(returns=exits.returns, raises=exits.raises)
        after: set[State] = set(states) if isinstance(node, ast.While) else set()
        start = states
        for _ in range(2):
            start = frozenset(_without(state, names) for state in start)
            left = self._run(node.body, scope, start, own)
            start = self._joined(left, own.continues)
            after |= start
            own.continues.clear()
        self._loops.pop()
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
        if endless:
            after.clear()
        else:
            after = set(self._run(node.orelse, scope, frozenset(after) or states, exits))
        return self._joined(frozenset(_without(state, names) for state in after | own.breaks))

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope, states: States, exits: _Exits) -> States:
        pushed = sum(self._enter(item.context_expr, scope) for item in node.items)
        states = self._run(node.body, scope, states, exits)
        del self._regions[len(self._regions) - pushed :]
        return states

    def _enter(self, expression: ast.expr, scope: Scope) -> int:
        """Note the autocast region that a context manager or decorator opens; how many regions that were."""
        things = self.roles.of(expression, scope)
        made = [thing for thing in things if thing.role in (Role.AUTOCAST, Role.AUTOCAST_MAKER)]
        if not made:
            return 0
        enabled = [thing for thing in made if not switched_off(thing.node)]
        certain = len(enabled) == len(things) and all(isinstance(t.node, ast.Call) for t in enabled)
        self._regions.append(Around(expression, certain) if enabled else None)
        return 1

    def _match(self, node: ast.Match, scope: Scope, states: States, exits: _Exits) -> States:
        left: set[State] = set()
        for case in node.cases:
            taken = states
            if case.guard is not None:
                taken = self._assumed(self._expressions(case, scope, states), case.guard, True, scope)
            left |= self._run(case.body, scope, taken, exits)
            if case.guard is None and takes_any(case.pattern):
                return self._joined(left)
        return self._joined(states, left)

    def _try(self, node: ast.Try, scope: Scope, states: States, exits: _Exits) -> States:
        """What leaves the statement, by whatever way, has run its ``finally``. Handlers see what was before or done."""
        own = _Exits()
        done = self._run(node.body, scope, states, own)
        thrown = frozenset(own.raises)
        left = set(self._run(node.orelse, scope, done, own))
        if node.handlers:
            own.raises -= thrown
        for handler in node.handlers:
            left |= self._run(handler.body, scope, self._joined(states, done, thrown), own)
        after = self._run(node.finalbody, scope, self._joined(left), exits)
        for leaving, out in zip(_ways(own), _ways(exits), strict=True):
            out |= self._run(node.finalbody, scope, frozenset(leaving), exits)
        return after

    def _joined(self, *several: set[State] | States) -> States:
        states = frozenset().union(*several)
        if len(states) <= MAX_STATES:
            return states
        self._blurred = True
        return frozenset(replace(state, assumed=frozenset()) for state in states)

    # ---- tests --------------------------------------------------------------------------------------------------

    def _assumed(self, states: States, test: ast.expr, truth: bool, scope: Scope) -> States:
        """The states in which a test can come out so."""
        return frozenset(s for state in states if (s := self._assume(state, test, truth, scope)) is not None)

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

    def _forget(self, states: States, node: ast.stmt) -> States:
        names = assigned_in(node)
        return frozenset(_without(state, names) for state in states) if names else states


def _ways(exits: _Exits) -> tuple[set[State], ...]:
    return exits.breaks, exits.continues, exits.returns, exits.raises


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
