"""What an expression that is meant to be a dtype can come out as, by its form and by what its variables are given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import stored_names
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import BITS, FLOATS
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.infer.flow.training.program import Program, Scope

DTYPES = frozenset(f"torch.{name}" for name, bit in BITS.items() if bit & FLOATS)
"""The floating dtypes of torch that mixed precision is about."""
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing that an expression may be: a constant, one of torch's dtypes (whichever), or unknown."""

    constant: object = None
    is_dtype: bool = False
    unknown: bool = False

    @property
    def may_be_true(self) -> bool:
        return self.is_dtype or self.unknown or bool(self.constant)

    @property
    def may_be_false(self) -> bool:
        return self.unknown or (not self.is_dtype and not self.constant)


_UNKNOWN = Outcome(unknown=True)
_DTYPE = Outcome(is_dtype=True)
_BOOLEANS = frozenset((Outcome(True), Outcome(False)))


class Outcomes:
    """The outcomes of the expressions of one file, whatever ran before.

    ``once``: variables that are given several things count as unknown, since only one holds at a place.
    """

    def __init__(self, program: Program, once: bool = False) -> None:
        self._program = program
        self._once = once

    def of(self, node: ast.expr, scope: Scope, depth: int = 0) -> frozenset[Outcome]:
        """All that an expression may be; unknown among it where the source does not show it."""
        if depth > _DEEPEST:
            return frozenset((_UNKNOWN,))
        if isinstance(node, ast.Constant):
            return frozenset((Outcome(node.value),))
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return _BOOLEANS
        if isinstance(node, ast.BoolOp):
            *first, last = (self.of(value, scope, depth + 1) for value in node.values)
            is_or = isinstance(node.op, ast.Or)
            return last | {o for part in first for o in part if (o.may_be_true if is_or else o.may_be_false)}
        if isinstance(node, ast.IfExp):
            return self._chosen(node, scope, depth) | self.of(node.orelse, scope, depth + 1)
        if self._program.name(node) in DTYPES or self._is_attribute_of_torch(node):
            return frozenset((_DTYPE,))
        values = self._given(node, scope) if isinstance(node, ast.Name) else []
        return frozenset().union(*(self.of(v, scope, depth + 1) for v in values)) if values else frozenset((_UNKNOWN,))

    def maker(self, node: ast.expr, scope: Scope) -> ast.expr:
        """What gives a variable its value, where one assignment does; else the expression itself."""
        values = self._given(node, scope) if isinstance(node, ast.Name) else []
        return values[0] if len(values) == 1 else node

    def _chosen(self, node: ast.IfExp, scope: Scope, depth: int) -> frozenset[Outcome]:
        """The outcomes of ``x if x in ("auto", None) else …`` where the test holds."""
        test = node.test
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.Eq) and len(test.ops) == 1:
            among = test.comparators[0]
            values: Iterable[ast.expr] = among.elts if isinstance(among, ast.List | ast.Tuple | ast.Set) else [among]
            if ast.dump(test.left) == ast.dump(node.body) and all(isinstance(v, ast.Constant) for v in values):
                return frozenset().union(*(self.of(value, scope) for value in values))
        return self.of(node.body, scope, depth + 1)

    def _is_attribute_of_torch(self, node: ast.expr) -> bool:
        """``getattr(torch, name)``, which is no string, whatever the name."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "getattr":
            return False
        return len(node.args) == 2 and self._program.name(node.args[0]) == "torch"

    def _given(self, name: ast.Name, scope: Scope) -> list[ast.expr]:
        """All that a local variable is given, none where something but a plain assignment gives it a value."""
        if isinstance(scope.node, ast.Module) or scope.binding(name.id) is not scope:
            return []
        if any(argument.arg == name.id for argument in nodes_of_kind(scope.node.args, ast.arg)):
            return []
        stores = len(stored_names(scope.node).get(name.id, ()))
        values = [v for target, v in scope.assignments if isinstance(target, ast.Name) and target.id == name.id]
        return values if len(values) == stores and (stores == 1 or not self._once) else []
