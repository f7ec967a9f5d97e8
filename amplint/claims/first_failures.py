"""What is not reached, because an operation that runs before it raises."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.state.facts import BranchesMet, Called, Refused, Unmoved
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from amplint.claims.conflict import Conflict
    from amplint.infer.state.facts import Event, FileFacts


@dataclass(frozen=True, slots=True)
class _Failure:
    """An operation that raises in some scenarios, in the branches that ``path`` names by ``id``, outermost first.

    ``sure``: it raises on every path. Else it raises only where what ``maker`` made is used, as all that the same call
    of it made then is: a function, by file and line, None where that is not known. ``row``: the line on which the
    activation that ends with it stands then.
    """

    node: ast.expr | ast.stmt
    scenarios: frozenset[str]
    sure: bool
    maker: tuple[str, int] | None
    path: tuple[int, ...] = ()
    row: int = 0


class Failures:
    """What raises, as a trace tells it, in each activation and in the calls that are not followed again."""

    def __init__(self) -> None:
        self._in: dict[int, list[_Failure]] = {}
        self._of_call: dict[int, tuple[_Failure, ...]] = {}
        self._before: dict[int, tuple[_Failure, ...]] = {}
        """By activation: what raises in those around it before it begins."""

    def enter(self, event: Event) -> None:
        """Take note of the activations that an event is the first of."""
        for depth, running in enumerate(event.chain):
            if running.number in self._before:
                break
            outer = [
                (around, failure) for around in event.chain[depth + 1 :] for failure in self._in.get(around.number, ())
            ]
            self._before[running.number] = tuple(
                failure for around, failure in outer if around.path[: len(failure.path)] == failure.path
            )

    def follow(self, event: Event, names: Callable[[Iterable[int]], tuple[str, ...]]) -> None:
        """Take note of an event that is no mismatch; ``names`` are those of scenarios by number.

        What raises in each of several branches raises whichever is taken.
        """
        what, found = event.what, self._in.get(event.chain[0].number, [])
        if isinstance(what, (Refused, Unmoved)):
            scenarios = frozenset(names(what.lanes))
            self._note(event, _Failure(what.node, scenarios, sure=True, maker=None))
        elif isinstance(what, BranchesMet):
            first, *rest = what.paths
            for failure in [failure for failure in found if failure.path == first]:
                alike = [other for other in found if (other.sure, other.maker) == (failure.sure, failure.maker)]
                everywhere = [{name for o in alike if o.path == path for name in o.scenarios} for path in rest]
                scenarios = failure.scenarios.intersection(*everywhere)
                if scenarios:
                    self._note(event, replace(failure, scenarios=scenarios))
        elif isinstance(what, Called) and what.again:
            for failure in self._of_call.get(what.call, ()):
                self._note(event, failure)
        elif isinstance(what, Called) and found:
            self._of_call[what.call] = tuple(failure for failure in found if not failure.path)

    def conflict(self, event: Event, conflict: Conflict, *, definite: bool) -> None:
        """Operands that disagree raise for all that runs behind them: in this activation, and, outside of branches, in
        its callers. ``definite``: they disagree on every path."""
        maker = _maker_of(conflict)
        if definite or maker is not None:
            scenarios = frozenset(conflict.scenarios)
            self._note(event, _Failure(conflict.node, scenarios, definite, maker))

    def _note(self, event: Event, failure: _Failure) -> None:
        for running in event.chain:
            if not running.function:
                break
            known = self._in.setdefault(running.number, [])
            if not failure.scenarios <= _covered(known, running.path):
                known.append(replace(failure, path=running.path, row=running.row))
            if running.path:
                break

    def before(self, event: Event, conflict: Conflict) -> dict[str, list[int]]:
        """What raises on the way to an operation in the scenarios in which that would, by ``id``."""
        found: dict[str, list[int]] = {}
        maker = _maker_of(conflict)
        for failure in self._leading(event, conflict.node):
            if failure.sure or (maker is not None and maker == failure.maker):
                for name in failure.scenarios.intersection(conflict.scenarios):
                    found.setdefault(name, []).append(id(failure.node))
        return found

    def scenarios_before(self, event: Event, node: ast.AST) -> dict[str, int]:
        """The scenarios in which something raises on the way to an operation, with its ``id``."""
        return {
            name: id(failure.node)
            for failure in self._leading(event, node)
            for name in failure.scenarios
            if failure.sure
        }

    def ends_of(self, activation: int, told: Container[int]) -> dict[str, int]:
        """The scenarios in which an activation ends early on every path, each with the line, 0 where it does not begin;
        ``told``: by ``id``, what counts."""
        before = (failure for failure in self._before.get(activation, ()) if failure.sure and id(failure.node) in told)
        found = {name: 0 for failure in before for name in failure.scenarios}
        for failure in self._in.get(activation, ()):
            if failure.sure and not failure.path and id(failure.node) in told:
                found = dict.fromkeys(failure.scenarios, failure.row) | found
        return found

    def _leading(self, event: Event, node: ast.AST) -> Iterator[_Failure]:
        for running in event.chain if self._in else ():
            for failure in self._in.get(running.number, ()):
                if failure.node is not node and running.path[: len(failure.path)] == failure.path:
                    yield failure


def met_unhindered(facts: FileFacts) -> frozenset[int]:
    """``id`` of the nodes of uses of which one was met where nothing had raised."""
    return frozenset(id(use.node) for use in facts.uses if id(use) in facts.unhindered)


def _covered(failures: Iterable[_Failure], path: tuple[int, ...]) -> set[str]:
    """The scenarios that end before a point of these branches is reached: what raises there hides nothing more."""
    leading = (each for each in failures if each.sure and path[: len(each.path)] == each.path)
    return {name for failure in leading for name in failure.scenarios}


def _maker_of(conflict: Conflict) -> tuple[str, int] | None:
    """The function that made the operand that is out of place; None for one made at the top level of a file."""
    if conflict.made is None:
        return None
    origin, inner = conflict.made.maker, None
    for node in nodes_of_kind(origin.source.tree, ast.FunctionDef, ast.AsyncFunctionDef):
        within = node.lineno <= origin.node.lineno <= (node.end_lineno or node.lineno)
        if within and (inner is None or node.lineno > inner.lineno):
            inner = node
    return (origin.filename, inner.lineno) if inner is not None else None
