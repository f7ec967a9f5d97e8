"""What rules read of a file's training steps."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from amplint.infer.flow.training.paths import Paths
from amplint.infer.flow.training.program import Program
from amplint.infer.flow.training.roles import Role, Roles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.infer.flow.training.program import Place
    from amplint.infer.flow.training.roles import Thing
    from amplint.infer.flow.training.steps import Moment, Step
    from amplint.infer.syntax.references import Reference


class Training:
    """The training steps of one file: its events in source order, and what its objects are."""

    def __init__(self, tree: ast.Module, references: Iterable[Reference]) -> None:
        self.program = Program(tree, references)

    @cached_property
    def roles(self) -> Roles:
        """What the objects of its training steps are."""
        return Roles(self.program)

    @cached_property
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
        for scope in self.program.scopes:
            values = [value for _, value in scope.assignments] + scope.returned
            for call in scope.calls:
                if self.program.callee(call, scope) is None:
                    values += [*call.args, *(keyword.value for keyword in call.keywords)]
            for value in values:
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
                if any(self.program.place(part, scope) == place for part in parts):
                    return True
        return False
