"""What rules read of a file's training steps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.compiling import kept, ordinary
from amplint.infer.flow.training.paths import Paths
from amplint.infer.flow.training.program import Program
from amplint.infer.flow.training.roles import Role, Roles
from amplint.infer.flow.training.steps import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.infer.flow.training.program import Place, Scope
    from amplint.infer.flow.training.roles import Thing
    from amplint.infer.flow.training.steps import Moment
    from amplint.infer.syntax.references import Reference


@ordinary
class Training:
    """The training steps of one file: its events in source order, and what its objects are."""

    def __init__(self, tree: ast.Module, references: Iterable[Reference]) -> None:
        self.program = Program(tree, references)

    @kept
    def roles(self) -> Roles:
        """What the objects of its training steps are."""
        return Roles(self.program)

    @kept
    def moments(self) -> tuple[Moment, ...]:
        """Every event of a training step, with the states in which it is reached."""
        moments = Paths(self.program, self.roles).moments.values()
        return tuple(sorted(moments, key=lambda m: (m.event.node.lineno, m.event.node.col_offset)))

    def moments_of(self, *steps: Step, scaler: Place | None = None) -> tuple[Moment, ...]:
        """The events of some kinds, and of one scaler where that is given."""
        return tuple(m for m in self.moments if m.event.step in steps and (scaler is None or m.event.scaler == scaler))

    @property
    def managers(self) -> tuple[Thing, ...]:
        """What the file makes of Accelerate's and Fabric's kind."""
        things = {t for place in self.roles.things.values() for t in place if t.role is Role.MANAGER}
        return tuple(things)

    def handed_over(self, place: Place) -> bool:
        """Whether what is at a place goes to code outside the file: as an argument, a result or a part of something."""
        return any(self._gives(scope, _all_values(scope, self.program), place) for scope in self.program.scopes)

    def kept_elsewhere(self, place: Place) -> bool:
        """Whether something else holds what is at a place from then on: an object that it was set on, or was given to
        by a call whose result is used."""
        return any(self._gives(scope, _kept_values(scope, self.program), place) for scope in self.program.scopes)

    def stepped_by_others(self, scaler: Place) -> bool:
        """Whether a function that steps with the scaler is handed to other code, such as a hook that runs within the
        backward pass."""
        given = {id(function) for scope in self.program.scopes for function in self._functions_given(scope)}
        return any(id(moment.event.scope) in given for moment in self.moments_of(Step.SCALER_STEP, scaler=scaler))

    def given_away(self, place: Place, scope: Scope) -> bool:
        """Whether a scope passes what is at a place to a function that is not of the file, which may do anything."""
        calls = (call for call in scope.calls if self.program.callee(call, scope) is None)
        return self._gives(scope, [value for call in calls for value in _arguments(call)], place)

    def _functions_given(self, scope: Scope) -> Iterator[Scope]:
        """The functions and methods of the file that a scope passes as arguments."""
        for value in (argument for call in scope.calls for argument in _arguments(call)):
            function = self.program.callee(ast.Call(value, [], []), scope)
            if function is not None:
                yield function

    def _gives(self, scope: Scope, values: Iterable[ast.expr], place: Place) -> bool:
        for value in values:
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
            if any(self.program.place(part, scope) == place for part in parts):
                return True
        return False


def _all_values(scope: Scope, program: Program) -> Iterator[ast.expr]:
    """What a scope assigns, returns, or passes to functions that are not of its file."""
    yield from (value for _, value in scope.assignments)
    yield from scope.returned
    for call in scope.calls:
        if program.callee(call, scope) is None:
            yield from _arguments(call)


def _kept_values(scope: Scope, program: Program) -> Iterator[ast.expr]:
    """What a scope sets on objects, or passes to functions that are not of its file and whose results it uses."""
    receiver = program.place(ast.Name(scope.receiver), scope) if scope.receiver is not None else None
    for target, value in scope.assignments:
        if isinstance(target, ast.Attribute | ast.Subscript) and program.place(target.value, scope) != receiver:
            yield value
    alone = {id(node.value) for node in ast.walk(scope.node) if isinstance(node, ast.Expr)}
    for call in scope.calls:
        if id(call) not in alone and program.callee(call, scope) is None:
            yield from _arguments(call)


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)
