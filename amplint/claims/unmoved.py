"""What is not reached on the device that is judged, since a tensor that was left in the host's memory is met before, or
there.

Torch raises there in every dtype: of code that its authors run on a device nothing of this is left. Who runs it on the
host alone, with half weights, meets the dtypes instead.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.claims.conflict import Conflict
from amplint.claims.first_failures import Failures, met_unhindered
from amplint.infer.state.facts import BranchesMet, Called, Mismatch, Refused, Unmoved, Used

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import Event, FileFacts
    from amplint.source import Span


def behind_unmoved(facts: FileFacts, suspect: Suspect) -> frozenset[str]:
    """The scenarios in which what a suspect is about is never reached on the device, however it is seen to be, or in
    which it is the operation that meets a tensor of the host's memory."""
    span = facts.span(suspect.data.node) if isinstance(suspect.data, Conflict) else suspect.span
    return _behind(facts).get(span, frozenset())


@lru_cache(maxsize=2)
def _behind(facts: FileFacts) -> dict[Span, frozenset[str]]:
    if not any(isinstance(event.what, Unmoved) for event in facts.trace):
        return {}
    failures, meeting = Failures(), set[tuple[object, int]]()
    found: dict[Span, frozenset[str]] = {}
    every, free = frozenset(scenario.name for scenario in facts.scenarios), met_unhindered(facts)
    for event in facts.trace:
        failures.enter(event)
        what = event.what
        if isinstance(what, (BranchesMet, Called, Unmoved)):
            failures.follow(event, facts.names)
            if isinstance(what, Unmoved):
                meeting |= {(came, id(what.node)) for came in _came(event)}
        elif event.own and isinstance(what, (Mismatch, Refused, Used)) and id(what.node) not in free:
            before = frozenset(failures.scenarios_before(event, what.node))
            if any((came, id(what.node)) in meeting for came in _came(event)):
                before |= every
            span = facts.span(what.node)
            found[span] = found.get(span, before) & before
    return found


def _came(event: Event) -> Iterator[object]:
    """How an operation was come to: in which activation, and from which call in what called that, which a loop makes
    again."""
    first, *callers = event.chain
    yield first.number
    if callers:
        yield tuple((caller.number, caller.row) for caller in callers)
