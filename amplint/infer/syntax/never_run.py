"""Lines that are never run: those behind a statement of the same block that leaves it on every path."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.control import goes_on

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS = ("body", "orelse", "finalbody")
_KEEPING = (ast.With, ast.AsyncWith)
"""Statements that may go on behind what is raised inside them, as with ``contextlib.suppress``."""


@once_for_each_node
def never_run(tree: ast.Module) -> list[tuple[int, int]]:
    """First and last rows of what stands behind a ``raise`` or ``return``, or behind what leaves a loop."""
    found: list[tuple[int, int]] = []
    for node in nodes_below(tree):
        for block in (getattr(node, name, None) for name in _BLOCKS):
            behind = _behind(block) if isinstance(block, list) and not goes_on(block[:-1]) else []
            if behind:
                found.append((behind[0].lineno, behind[-1].end_lineno or behind[-1].lineno))
    return found


def _behind(block: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """The statements of a block behind the first that leaves it."""
    leaving = (at for at, statement in enumerate(block) if _leaves(statement))
    first = next(leaving, len(block))
    return block[first + 1 :]


def _leaves(statement: ast.stmt) -> bool:
    return not goes_on([statement]) and not any(isinstance(node, _KEEPING) for node in nodes_below(statement))
