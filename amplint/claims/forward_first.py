"""What a Function's backward pass never comes to, because its forward pass raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.conflicts import early_ends

if TYPE_CHECKING:
    import ast

    from amplint.infer.state.facts import FileFacts


def ended_in_forward(facts: FileFacts, row: int) -> frozenset[str]:
    """The scenarios in which what runs before a line of a backward pass, its Function's ``forward``, ends early however
    it is seen to be called."""
    found = (f.forward.lineno for f in facts.autograd_functions if f.forward and f.backward and _holds(f.backward, row))
    return frozenset(name for line in found for name in early_ends(facts, called=True).get(line, {}))


def _holds(function: ast.FunctionDef, row: int) -> bool:
    return function.lineno <= row <= (function.end_lineno or function.lineno)
