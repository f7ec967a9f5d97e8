"""Tests whether something is one of some constants, and what one such test says of another."""

from __future__ import annotations

import ast
from typing import NamedTuple

from amplint.infer.syntax.bodies import once_for_each_node

_KINDS = (str, int, type(None))


class Membership(NamedTuple):
    """A test whether ``what``, as text, is one of ``constants``; ``denied`` where it is true if it is none."""

    what: str
    constants: frozenset[str | int | None]
    denied: bool

    def says(self, truth: bool, other: Membership) -> bool | None:
        """How another test comes out where this one came out so; None where either may be."""
        if self.what != other.what:
            return None
        if truth == self.denied:
            within = False if other.constants <= self.constants else None
        elif self.constants <= other.constants:
            within = True
        else:
            within = False if self.constants.isdisjoint(other.constants) else None
        return None if within is None else within != other.denied


@once_for_each_node
def membership_of(test: ast.expr) -> Membership | None:
    """``a == 1``, ``a is None``, ``a in ("b", "c")`` and what denies these; None for any other test."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = membership_of(test.operand)
        return found._replace(denied=not found.denied) if found is not None else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, (ast.Name, ast.Attribute)):
        return None
    op, right = test.ops[0], test.comparators[0]
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        given = right.elts
    elif isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        given = [right]
    else:
        return None
    constants = [item.value for item in given if isinstance(item, ast.Constant) and isinstance(item.value, _KINDS)]
    if len(constants) < len(given) or any(isinstance(value, bool) for value in constants):
        return None
    return Membership(ast.unparse(test.left), frozenset(constants), isinstance(op, (ast.NotIn, ast.NotEq, ast.IsNot)))
