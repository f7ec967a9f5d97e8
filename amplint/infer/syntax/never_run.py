"""Lines that are never run: those behind a statement of the same block that leaves it."""

from __future__ import annotations

import ast

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node

_LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_BLOCKS = ("body", "orelse", "finalbody")


@once_for_each_node
def never_run(tree: ast.Module) -> list[tuple[int, int]]:
    """First and last rows of what stands behind a ``raise`` or ``return``, or behind what leaves a loop."""
    found: list[tuple[int, int]] = []
    for node in nodes_below(tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            statements = block if isinstance(block, list) else []
            left = next((at for at, one in enumerate(statements) if isinstance(one, _LEAVING)), len(statements))
            if statements[left + 1 :]:
                found.append((statements[left + 1].lineno, statements[-1].end_lineno))
    return found
