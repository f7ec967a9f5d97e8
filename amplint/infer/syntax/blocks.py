"""The statements around a statement: what stands before and after it in its block."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.bodies import once_for_each_node

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS = ("body", "orelse", "finalbody")


def statement_before(tree: ast.Module, node: ast.expr) -> ast.stmt | None:
    """The statement right before the one, without a block of its own, that an expression stands in."""
    block, index = _places(tree).get(id(node), ((), 0))
    return block[index - 1] if index else None


def statements_after(tree: ast.Module, node: ast.expr) -> Sequence[ast.stmt]:
    """The rest of the block after the statement that an expression stands in."""
    block, index = _places(tree).get(id(node), ((), 0))
    return block[index + 1 :]


@once_for_each_node
def _places(tree: ast.Module) -> dict[int, tuple[Sequence[ast.stmt], int]]:
    """The block and index of the simple statement of every expression."""
    found: dict[int, tuple[Sequence[ast.stmt], int]] = {}
    for node in ast.walk(tree):
        for name in _BLOCKS:
            block: Sequence[ast.stmt] = getattr(node, name, None) or ()
            for index, statement in enumerate(block) if isinstance(block, list) else ():
                if not any(hasattr(statement, inner) for inner in ("body", "cases", "handlers")):
                    found.update((id(part), (block, index)) for part in ast.walk(statement))
    return found
