"""What is assumed on a path of a training step: how the tests on it came out, until what they read changes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.bodies import once_for_each_node
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from amplint.infer.flow.training.program import Scope
    from amplint.infer.flow.training.steps import Assumed, State


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a test says that came out in one way."""

    holds: Assumed
    against: Assumed
    """The opposite of each of these."""
    denied: Assumed
    """What cannot hold all together: the parts of what the test says where it comes out the other way."""

    def after(self, state: State) -> State | None:
        """The state in which it came out so; None where what was assumed before says otherwise."""
        if not self.against.isdisjoint(state.assumed):
            return None
        assumed = state.assumed | self.holds
        return None if self.denied and self.denied <= assumed else replace(state, assumed=assumed)


class Assumptions:
    """The tests of one file: what each says of which names."""

    def __init__(self) -> None:
        self._aliases: dict[tuple[int, str], str] = {}
        """Parameters of the helpers that run, by scope and name: what their callers call the same thing."""
        self._outcomes: dict[tuple[int, bool, int], _Outcome | None] = {}
        """By test, truth and scope, as long as no alias changes."""
        self._parts: dict[tuple[int, bool], list[tuple[ast.expr, bool]] | None] = {}
        self._renamed: dict[int, tuple[ast.Expression, list[tuple[ast.Name, str]]]] = {}
        """By test: a copy, and its names with what they are called in the test."""
        self._words: dict[str, frozenset[str]] = {}
        """By test: the names that it reads, and the last names of attributes, each behind a dot."""

    def came_out(self, states: frozenset[State], test: ast.expr, truth: bool, scope: Scope) -> frozenset[State]:
        """The states in which a test can come out so, with that assumed."""
        asked = (id(test), truth, id(scope))
        if asked not in self._outcomes:
            self._outcomes[asked] = self._outcome(test, truth, scope)
        outcome = self._outcomes[asked]
        if outcome is None:
            return frozenset()
        return frozenset(after for state in states if (after := outcome.after(state)) is not None)

    def forget(self, states: frozenset[State], node: ast.AST) -> frozenset[State]:
        """Forget what was assumed of names that a statement binds, and what was done to the optimizers they held."""
        names = assigned_in(node)
        if not names:
            return states
        facts = {fact for state in states for fact in state.assumed}
        stale = {fact for fact in facts if not names.isdisjoint(self._words[fact[0]])}
        pairs = {pair for state in states for pair in (*state.unscaled, *state.stepped)}
        changed = {pair for pair in pairs if not names.isdisjoint(part for place in pair for part in place)}
        if not stale and not changed:
            return states
        return frozenset(
            replace(
                state,
                assumed=state.assumed - stale,
                unscaled=state.unscaled - changed,
                stepped=state.stepped - changed,
            )
            for state in states
        )

    def passed(self, call: ast.Call, caller: Scope, callee: Scope) -> None:
        """A helper runs: note those of its parameters that are variables of its caller under another name."""
        given = list(zip((a.arg for a in callee.parameters()), call.args, strict=False))
        given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
        aliases = {
            (id(callee), name): self._canonical(value.id, caller)
            for name, value in given
            if isinstance(value, ast.Name)
        }
        if not aliases.items() <= self._aliases.items():
            self._aliases.update(aliases)
            self._outcomes.clear()

    def _outcome(self, test: ast.expr, truth: bool, scope: Scope) -> _Outcome | None:
        """What it says that a test comes out so; None where it cannot."""
        parts, negated = self._conditions(test, truth), self._conditions(test, not truth) or []
        if parts is None:
            return None
        if isinstance(test, ast.BoolOp):
            parts = [*parts, (test, truth)]
        holds = frozenset((self._key(node, scope), value) for node, value in parts)
        against = frozenset((key, not value) for key, value in holds)
        if not holds.isdisjoint(against):
            return None
        denied = [(self._key(node, scope), value) for node, value in negated] if len(negated) > 1 else []
        return _Outcome(holds, against, frozenset(denied))

    def _conditions(self, test: ast.expr, truth: bool) -> list[tuple[ast.expr, bool]] | None:
        asked = (id(test), truth)
        if asked not in self._parts:
            self._parts[asked] = conditions(test, truth)
        return self._parts[asked]

    def _key(self, node: ast.expr, scope: Scope) -> str:
        """A test as text, with its variables named by the function that made them, and the names that it reads."""
        renamed = self._renamed.get(id(node))
        if renamed is None:
            copy = ast.parse(ast.unparse(node), mode="eval")
            names = [(inner, inner.id) for inner in ast.walk(copy) if isinstance(inner, ast.Name)]
            renamed = self._renamed[id(node)] = copy, names
        copy, names = renamed
        for inner, name in names:
            inner.id = self._canonical(name, scope)
        key = f"{ast.unparse(copy)} # {' '.join(name for _, name in names)}"
        if key not in self._words:
            attributes = (f".{inner.attr}" for inner in ast.walk(copy) if isinstance(inner, ast.Attribute))
            self._words[key] = frozenset((*attributes, *(name for _, name in names)))
        return key

    def _canonical(self, name: str, scope: Scope) -> str:
        owner = scope.binding(name)
        if owner is None or name == owner.receiver:
            return name
        return self._aliases.get((id(owner), name), f"{name}_{id(owner)}")


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


@once_for_each_node
def assigned_in(node: ast.AST) -> frozenset[str]:
    """The names that a statement binds, and the last names of attributes, each behind a dot."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            names.add(inner.id)
        elif isinstance(inner, ast.Attribute) and not isinstance(inner.ctx, ast.Load):
            names.add(f".{inner.attr}")
    return frozenset(names)
