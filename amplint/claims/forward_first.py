"""What a Function's backward pass never comes to, because its forward pass raises."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.conflicts import conflicts
from amplint.claims.surroundings import Surroundings
from amplint.infer.state.facts import Kind
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts


def behind_forward(facts: FileFacts, suspects: Iterable[Suspect]) -> Iterator[Suspect]:
    """Suspects of backward passes in the scenarios in which ``forward`` comes to its end, as far as the file tells.

    What is told of ``forward`` outside of its branches raises in every call; where that leaves no scenario, the suspect
    is doubted.
    """
    failing = dict(_failing(facts))
    for suspect in suspects:
        row = suspect.span.start.row
        scenarios = next((found for rows, found in failing.items() if row in rows), frozenset())
        left = tuple(name for name in suspect.scenarios if name not in scenarios)
        yield replace(suspect, scenarios=left) if left else suspect.doubted(doubts.FAILS_BEFORE)


def _failing(facts: FileFacts) -> Iterator[tuple[range, frozenset[str]]]:
    """The rows of each backward pass with the scenarios in which the forward pass before it raises."""
    around = Surroundings.of(facts.source.tree)
    for function in facts.autograd_functions:
        if function.forward is None or function.backward is None:
            continue
        told = (c for c in conflicts(facts) if c.standing.told and c.raises and c.kind is not Kind.BACKWARD)
        raising = [c for c in told if around.function(c.node) is function.forward and not _branched(c.node, around)]
        end = function.backward.end_lineno or function.backward.lineno
        yield (
            range(function.backward.lineno, end + 1),
            frozenset(name for conflict in raising for name in conflict.scenarios),
        )


def _branched(node: ast.AST, around: Surroundings) -> bool:
    return any(isinstance(ancestor, ast.If | ast.Try | ast.Match | ast.IfExp) for ancestor in around.ancestors(node))
