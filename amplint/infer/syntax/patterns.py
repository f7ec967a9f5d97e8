"""Patterns of ``match`` statements, as far as syntax tells."""

from __future__ import annotations

import ast


def takes_any(pattern: ast.pattern) -> bool:
    """Whether a pattern matches whatever it gets: ``_``, a name, or one of these among several."""
    if isinstance(pattern, ast.MatchOr):
        return any(map(takes_any, pattern.patterns))
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or takes_any(pattern.pattern))
