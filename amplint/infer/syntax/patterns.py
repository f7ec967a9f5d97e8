"""Patterns of ``match`` statements, as far as syntax tells."""

from __future__ import annotations

import ast

from amplint.infer.syntax.bodies import once_for_each_node


def takes_any(pattern: ast.pattern) -> bool:
    """Whether a pattern matches whatever it gets: ``_``, a name, or one of these among several."""
    if isinstance(pattern, ast.MatchOr):
        return any(map(takes_any, pattern.patterns))
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or takes_any(pattern.pattern))


@once_for_each_node
def comparisons(statement: ast.Match) -> list[ast.expr | None]:
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
