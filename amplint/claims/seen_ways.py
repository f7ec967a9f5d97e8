"""The lines of a file on which the analysis was seen to come to what disagrees there."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.claims.conflicts import in_context
from amplint.infer.state.facts import Called, Mismatch
from amplint.infer.syntax.bodies import nodes_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amplint.finding import Cause
    from amplint.infer.state.facts import FileFacts, Running
    from amplint.source import Span

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def only_through(facts: FileFacts, span: Span, shut: Callable[[int], bool]) -> bool:
    """Whether the operands at ``span`` were seen to disagree, each time on a way through a line that is ``shut``, and
    do not where what is behind that line is called otherwise: it got one of them there, or was called from outside."""
    ways = _Ways.of(facts)
    told = [
        (chain, claim.causes)
        for chain, mismatch in ways.met.get(span, ())
        if (claim := in_context(facts, mismatch)) is not None and claim.standing.told
    ]
    return bool(told) and all(
        not ways.is_open(chain, shut, set()) and (ways.is_entered(chain, shut) or _is_got_there(facts, causes, shut))
        for chain, causes in told
    )


def only_got(facts: FileFacts, span: Span, shut: Callable[[int], bool]) -> bool:
    """Whether the operands at ``span`` were seen to disagree, and one of them got its dtype on a line that is ``shut``
    each time."""
    met = _Ways.of(facts).met.get(span, ())
    told = [c.causes for _, m in met if (c := in_context(facts, m)) is not None and c.standing.told]
    return bool(told) and all(_is_got_there(facts, causes, shut) for causes in told)


def _is_got_there(facts: FileFacts, causes: Iterable[Cause], shut: Callable[[int], bool]) -> bool:
    """Whether an operand got its dtype on a line that is shut."""
    return any(cause.filename == facts.path and shut(cause.span.start.row) for cause in causes)


class _Ways:
    """How activations were come to: through those that called them, and through equal calls, which were not followed
    again."""

    @staticmethod
    @lru_cache(maxsize=1)
    def of(facts: FileFacts) -> _Ways:
        return _Ways(facts)

    def __init__(self, facts: FileFacts) -> None:
        self.met: dict[Span, list[tuple[tuple[Running, ...], Mismatch]]] = {}
        """The operands that were seen to disagree, and how each time was come to, by place."""
        for event in facts.trace:
            if isinstance(event.what, Mismatch) and event.own:
                self.met.setdefault(facts.span(event.what.node), []).append((event.chain, event.what))
        self._entered = facts.entered
        self._own = {id(node) for node in nodes_below(facts.source.tree) if isinstance(node, _FUNCTIONS)}
        self._call: dict[int, int] = {}
        self._again: dict[int, list[tuple[Running, ...]]] = {}
        for event in facts.trace:
            if isinstance(event.what, Called) and event.what.again:
                self._again.setdefault(event.what.call, []).append(event.chain)
            elif isinstance(event.what, Called):
                self._call[event.chain[0].number] = event.what.call

    def is_entered(self, chain: tuple[Running, ...], shut: Callable[[int], bool]) -> bool:
        """Whether what runs behind the line that is shut was followed as called from outside, too."""
        for running in chain:
            if running.function in self._own and shut(running.row):
                return False
            if running.function in self._entered:
                return True
        return False

    def is_open(self, chain: tuple[Running, ...], shut: Callable[[int], bool], seen: set[int]) -> bool:
        """Whether some way to the first activation of a chain passes no line that is shut."""
        for running in chain:
            if running.function in self._own and shut(running.row):
                return False
            call = self._call.get(running.number)
            if call is not None and call not in seen:
                seen.add(call)
                if any(self.is_open(other, shut, seen) for other in self._again.get(call, ())):
                    return True
        return True
