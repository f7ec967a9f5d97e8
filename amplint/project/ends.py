"""What the inference says of other files of a run, found once for each: which functions end early, and what fails in
what they call."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amplint import contents
from amplint.claims.conflicts import early_ends, met_behind
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.strength import Strength
from amplint.infer.state.facts import Mismatch
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amplint.infer.lattice.assumptions import Settled
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.state.facts import FileFacts

Ends = dict[int, dict[str, int]]
"""Functions, by the line of their definition, with the scenarios in which they end early, each with the line."""


class Judging(NamedTuple):
    """What files are judged for, as :func:`amplint.infer.entry.analysis.analyse` wants it."""

    scenarios: tuple[Scenario, ...]
    device: str
    torch_version: tuple[int, int]
    oldest_torch: tuple[int, int] | None
    named: bool = False

    def facts(self, source: Source) -> FileFacts:
        """What the inference says of a file. Raises SourceError where it does not parse."""
        return analyse(source, **self._asdict())

    def facts_where(self, settled: Settled, source: Source) -> FileFacts:
        """The same where callers leave some things as they are."""
        return analyse(source, **self._asdict(), settled=settled)

    def ends(self, path: Path) -> Ends:
        """The functions of a file that end early; none of one that cannot be read."""
        return _found(path, self, contents.age()).ends

    def ends_called(self, path: Path) -> Ends:
        """The same as the file itself calls its functions."""
        return _found(path, self, contents.age()).ends_called

    def brings_about(self, path: Path) -> frozenset[Failure]:
        """The operations in other files whose operands disagree for what this one passes; none if it cannot be read."""
        return _found(path, self, contents.age()).brought

    def meets_behind(self, path: Path) -> frozenset[Failure]:
        """The operations in other files that raise for what this one calls, but only where something raises before
        them; none if it cannot be read."""
        return _found(path, self, contents.age()).behind


class Failure(NamedTuple):
    """An operation that raises: where it stands, and in which scenario."""

    path: Path
    row: int
    scenario: str


class _Found(NamedTuple):
    """What is kept of the facts about a file."""

    ends: Ends
    ends_called: Ends
    brought: frozenset[Failure]
    behind: frozenset[Failure]


@lru_cache(maxsize=512)
def _found(path: Path, judging: Judging, age: int) -> _Found:
    try:
        facts = judging.facts(Source(path, contents.read(path)))
    except (OSError, SourceError, RecursionError):
        return _Found({}, {}, frozenset(), frozenset())
    behind = frozenset(Failure(*met) for met in met_behind(facts))
    return _Found(early_ends(facts), early_ends(facts, called=True), frozenset(_brought_about(facts)), behind)


def _brought_about(facts: FileFacts) -> Iterator[Failure]:
    for event in facts.trace:
        found = event.what
        if not isinstance(found, Mismatch) or not found.strengths or (event.own and found.elsewhere is None):
            continue
        there = found.elsewhere
        path, row = (there.filename, there.span.start.row) if there is not None else (event.path, found.node.lineno)
        for lane, strength in zip(found.lanes, found.strengths, strict=True):
            if strength > Strength.PATH or (strength is Strength.PATH and not _is_open(found, lane)):
                yield Failure(path, row, facts.scenarios[lane].name)


def _is_open(found: Mismatch, lane: int) -> bool:
    """Whether an operand may have other dtypes than those that are known: those of another path are not."""
    return any(operand.value.dtypes[lane].open for operand in found.pair)
