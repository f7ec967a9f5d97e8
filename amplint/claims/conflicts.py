"""What a file's mismatches claim: each defect once, the first of what fails for it."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

from amplint.claims.conflict import Conflict, conflict_of
from amplint.claims.first_failures import Failures, met_unhindered
from amplint.claims.mismatch_doubts import judge
from amplint.infer.state.facts import Confirming, Kind, Mismatch, Refused, Unmoved, Used
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from amplint.finding import Place
    from amplint.infer.state.facts import Event, FileFacts, Use
    from amplint.source import Span

_ONE_PER_ORIGIN = (Kind.UPCAST, Kind.AUTOCAST_EXIT, Kind.MIXED, Kind.CONSTANT, Kind.TABLE)


def conflicts(facts: FileFacts) -> tuple[Conflict, ...]:
    """One conflict a defect: of several operations that one cast or one uncast tensor makes fail, the first, which
    names the others, and none in a function that is only called behind it."""
    return _judged(facts).told


def in_context(facts: FileFacts, found: Mismatch) -> Conflict | None:
    """What one mismatch claims by itself; None where another file is not to blame."""
    return _judged(facts).contexts.get(id(found))


def unreached(facts: FileFacts, span: Span) -> frozenset[str]:
    """The scenarios in which something that is told raises before the operation at ``span``, which low precision may
    not bear."""
    return _judged(facts).unreached.get(span, frozenset())


def hindered(facts: FileFacts, use: Use) -> frozenset[str]:
    """The scenarios in which something that is told raises before an operation gets these operands."""
    return _judged(facts).hindered.get(id(use), frozenset())


def unused(facts: FileFacts, row: int) -> frozenset[str]:
    """The scenarios in which the function around a line ends early, so that what it computes there is not used."""
    functions = nodes_of_kind(facts.source.tree, ast.FunctionDef, ast.AsyncFunctionDef)
    around = (n.lineno for n in functions if n.lineno <= row <= (n.end_lineno or n.lineno))
    ends = early_ends(facts).get(max(around, default=0), {})
    return frozenset(name for name, end in ends.items() if end)


def met_behind(facts: FileFacts) -> Iterator[tuple[Path, int, str]]:
    """The lines of other files, each with a scenario, on which something raises for what this file calls, but only
    behind something else that raises in that scenario."""
    for (path, row), seen in _judged(facts).elsewhere.items():
        for name in {name for scenarios, _ in seen for name in scenarios}:
            met = [before.get(name, 0) for scenarios, before in seen if name in scenarios]
            if all(what in _judged(facts).refused for what in met):
                yield path, row, name


@lru_cache(maxsize=4)
def early_ends(facts: FileFacts, *, called: bool = False) -> dict[int, dict[str, int]]:
    """Functions, by the line of their definition, that end early in some scenarios however they were seen to be called:
    each scenario with the last line on which they do.

    ``called``: as other functions call them, where some do; not for what is taken to come from outside of the file.
    """
    judged = _judged(facts)
    followed = {**facts.activations, **facts.called} if called else facts.activations
    found = {
        row: [judged.failures.ends_of(activation, judged.refused) for activation in activations]
        for row, activations in followed.items()
    }
    return {
        row: {name: max(end[name] for end in ends) for name in ends[0] if all(name in end for end in ends)}
        for row, ends in found.items()
    }


class _Judged:
    """The mismatches of a file, judged in the order in which they happened.

    A node that fails in several contexts is one conflict, with the scenarios of all of them.
    """

    def __init__(self, facts: FileFacts) -> None:
        self.contexts: dict[int, Conflict] = {}
        self._facts = facts
        self._conflicts: dict[int, Conflict] = {}
        self._failed: dict[tuple[Kind, Place, int], Conflict] = {}
        self._first: dict[int, set[int]] = {}
        self._under_default: set[int] = set()
        """By ``id``, the operations that run where the file has set a default dtype of 16 bit."""
        self._seen: dict[int, list[tuple[Conflict, dict[str, list[int]]]]] = {}
        self.refused: set[int] = set()
        """What raises and is told, or stands in another file, by ``id``."""
        self._before_node: dict[ast.expr | ast.stmt, list[dict[str, int]]] = {}
        self._before_use: dict[int, list[dict[str, int]]] = {}
        self.failures = Failures()
        self.elsewhere: dict[tuple[Path, int], list[tuple[tuple[str, ...], dict[str, int]]]] = {}
        """By line of another file on which something raises, and each time that it does: in which scenarios, and what
        raises before in some."""
        self._confirming: dict[int, Conflict] = {}
        self._chains: dict[int, list[set[int]]] = {}
        """By operation: the functions that ran, each time that its operands disagreed."""
        for event in facts.trace:
            self._follow(event)
        self.told = tuple(self._told())
        self.refused |= {id(node) for c in self.told if c.standing.told for node in (c.node, *c.also)}
        free = met_unhindered(facts)
        self.unreached = {
            facts.span(node): self._raised_in_all(seen)
            for node, seen in self._before_node.items()
            if id(node) not in free
        }
        self.hindered = {
            use: self._raised_in_all(seen) for use, seen in self._before_use.items() if use not in facts.unhindered
        }

    def _raised_in_all(self, seen: Iterable[Mapping[str, int]]) -> frozenset[str]:
        """The scenarios in which something that is told raised before, each time."""
        return frozenset.intersection(
            *(frozenset(name for name, what in before.items() if what in self.refused) for before in seen)
        )

    def _follow(self, event: Event) -> None:
        self.failures.enter(event)
        if isinstance(event.what, Mismatch):
            self._judge(event, event.what)
        elif isinstance(event.what, Confirming):
            self._confirm(event.what)
        elif not isinstance(event.what, Unmoved):
            if isinstance(event.what, (Used, Refused)) and event.own:
                before = self.failures.scenarios_before(event, event.what.node)
                self._before_node.setdefault(event.what.node, []).append(before)
                if isinstance(event.what, Used):
                    self._before_use.setdefault(id(event.what.use), []).append(before)
            if isinstance(event.what, Refused):
                if not event.own:
                    self._meet_elsewhere(event, event.what.node, self._facts.names(event.what.lanes))
                self.refused.add(id(event.what.node))
            self.failures.follow(event, self._facts.names)

    def _judge(self, event: Event, found: Mismatch) -> None:
        judged = judge(self._facts, found, event.autocast)
        lanes, standing, definite, others = judged
        if found.elsewhere is not None:
            lanes = tuple(lane for lane in lanes if lane in found.brought)
            if not lanes or not standing.told:
                return
        conflict = conflict_of(self._facts, found, event.chain[0].function, lanes, standing)
        if not event.own:
            if standing.told:
                self._meet_elsewhere(event, found.node, conflict.scenarios)
                self.refused.add(id(found.node))
                self.failures.conflict(event, conflict, definite=definite)
            return
        self.contexts[id(found)] = conflict
        if found.low_default:
            self._under_default.add(id(found.node))
        if standing.told:
            self._seen.setdefault(id(found.node), []).append((conflict, self.failures.before(event, conflict)))
            if found.raises and not found.cited:
                self.failures.conflict(event, conflict, definite=definite)
                if others and definite:
                    less_sure = replace(conflict, scenarios=self._facts.names(others))
                    self.failures.conflict(event, less_sure, definite=True)
        self._first.setdefault(id(found.node), set()).add(id(self._failed_before(event, conflict)))
        if conflict.culprit is not None and found.raises and not event.branched:
            defect = (found.kind, conflict.culprit, conflict.function)
            failed = self._failed.get(defect)
            if failed is None or not failed.standing.told:
                self._failed[defect] = conflict
        self._chains.setdefault(id(found.node), []).append({running.function for running in event.chain})
        old = self._conflicts.get(id(found.node))
        self._conflicts[id(found.node)] = conflict if old is None else _both(old, conflict)

    def _meet_elsewhere(self, event: Event, node: ast.expr | ast.stmt, scenarios: tuple[str, ...]) -> None:
        """Take note of what raises in another file in some scenarios, and of what does so before."""
        before = self.failures.scenarios_before(event, node)
        self.elsewhere.setdefault((event.path, node.lineno), []).append((scenarios, before))

    def _failed_before(self, event: Event, conflict: Conflict) -> ast.expr | ast.stmt:
        """What fails first for the same operand: outside of branches of a function that led here, else nothing before
        the operation itself.

        Where autocast is off, each operation wants a cast of its own.
        """
        if conflict.kind is Kind.AUTOCAST_EXIT or conflict.kind not in _ONE_PER_ORIGIN or conflict.culprit is None:
            return conflict.node
        for function in event.callers:
            failed = self._failed.get((conflict.kind, conflict.culprit, function))
            if failed is not None and set(conflict.scenarios) <= set(failed.scenarios):
                return conflict.node if conflict.standing.told and not failed.standing.told else failed.node
        return conflict.node

    def _confirm(self, event: Confirming) -> None:
        """Of what disagrees in a Function so far, forget what does not disagree for any module that applies it."""
        if not event.done:
            inside = {id(node) for node in ast.walk(event.node)}
            led = [key for key in self._conflicts if all(chain & inside for chain in self._chains[key])]
            self._confirming = {key: self._conflicts.pop(key) for key in led}
            return
        self._conflicts.update({key: conflict for key, conflict in self._confirming.items() if key in self._conflicts})

    def _aligned_elsewhere(self) -> Iterator[Conflict]:
        """One for each function whose operands follow different callers, and are cast to one dtype in another one."""
        spoken: set[int] = set()
        for found, function, cast in self._facts.aligned:
            if id(found.node) not in self._conflicts and function not in spoken:
                spoken.add(function)
                conflict = conflict_of(self._facts, found, function, found.lanes, ASSUMED)
                yield replace(conflict, causes=(*conflict.causes, cast), aligned=cast.span)

    def _told(self) -> Iterator[Conflict]:
        kept: list[Conflict] = []
        spoken: dict[tuple[Kind, Place, int], int] = {}
        found = [*self._conflicts.values(), *self._aligned_elsewhere()]
        raising = self.refused | {id(conflict.node) for conflict in found if conflict.standing.told}
        for conflict in sorted(found, key=lambda c: (self._hidden(c, raising), c.standing.rank)):
            first = self._first.get(id(conflict.node), {id(conflict.node)})
            if id(conflict.node) not in first and first <= self._conflicts.keys():
                continue
            if conflict.kind in _ONE_PER_ORIGIN and conflict.culprit is not None:
                defect = (conflict.kind, conflict.culprit, conflict.function)
                if defect in spoken:
                    if conflict.standing.told:
                        told = kept[spoken[defect]]
                        kept[spoken[defect]] = replace(told, also=(*told.also, conflict.node))
                    continue
                spoken[defect] = len(kept)
            kept.append(conflict)
        return (self._reached(conflict, raising) for conflict in kept)

    def _hidden(self, conflict: Conflict, raising: set[int]) -> bool:
        """Whether something raises before a conflict wherever it was seen."""
        seen = self._seen.get(id(conflict.node), [])
        return bool(seen) and not any(_left(found, before, raising) for found, before in seen)

    def _reached(self, conflict: Conflict, raising: set[int]) -> Conflict:
        """What is left of a conflict where nothing raises before it; doubted where that is nowhere."""
        seen = self._seen.get(id(conflict.node), [])
        reached = [(found, _left(found, before, raising)) for found, before in seen]
        if all(left == found.scenarios for found, left in reached):
            return conflict
        contexts = [replace(found, scenarios=left) for found, left in reached if left]
        left = reduce(_both, contexts) if contexts else conflict.doubted(doubts.FAILS_BEFORE)
        if self._is_left_by_default(conflict, left):
            left = left.doubted(doubts.DEFAULT_UNSEEN)
        return replace(left, also=conflict.also)

    def _is_left_by_default(self, conflict: Conflict, left: Conflict) -> bool:
        """Whether nothing is left of a conflict but what models show that are made under a default dtype, where nothing
        in the file sets one and no such scenario was named."""
        explicit = {scenario.name for scenario in self._facts.scenarios if scenario.keeps_explicit}
        if self._facts.named or id(conflict.node) in self._under_default or not explicit.issuperset(left.scenarios):
            return False
        return not explicit.issuperset(conflict.scenarios)


def _left(conflict: Conflict, before: Mapping[str, Collection[int]], raising: set[int]) -> tuple[str, ...]:
    """The scenarios of a conflict in which nothing of what is ``raising`` does so before it."""
    return tuple(name for name in conflict.scenarios if raising.isdisjoint(before.get(name, ())))


_judged = lru_cache(maxsize=2)(_Judged)


def _both(a: Conflict, b: Conflict) -> Conflict:
    """One defect seen in two contexts: the stronger claim, with every scenario of that strength."""
    if (a.raises, a.standing.rank) != (b.raises, b.standing.rank):
        return max(a, b, key=lambda c: (c.raises, -c.standing.rank))
    scenarios = a.scenarios + tuple(s for s in b.scenarios if s not in a.scenarios)
    return replace(a, scenarios=scenarios, by_callers=a.by_callers and b.by_callers)
