"""The figures, as text and for the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from found.case import load

from confirmed.outcome import CONFIRMED, OUTCOME, RAN, at_first_sight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from figures.results import Figures

    from confirmed.outcome import Library, Outcome


@dataclass(frozen=True, slots=True)
class Counts:
    """How many findings came to each outcome."""

    counts: Counter[str]

    @property
    def decided(self) -> tuple[int, int]:
        """The confirmed ones among those that ran to their place and could have failed."""
        return self.counts[CONFIRMED], self.counts[CONFIRMED] + self.counts[RAN]

    @property
    def all(self) -> int:
        return sum(self.counts.values())


def findings(outcomes: Iterable[Outcome]) -> Counts:
    """Count findings: one that has several scenarios by the outcome that says most."""
    best: dict[tuple[str, str, str, str], str] = {}
    for one in outcomes:
        best[one.finding] = min(best.get(one.finding, OUTCOME[-1]), one.outcome, key=OUTCOME.index)
    return Counts(Counter(best.values()))


def groups(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, Counts]]:
    """All, then by severity, certainty, rule and scenario."""
    yield "all", findings(outcomes)
    for name in ("severity", "certainty", "code", "scenario"):
        for value in sorted({getattr(one, name) for one in outcomes}):
            yield value, findings(one for one in outcomes if getattr(one, name) == value)


def sides(libraries: Sequence[Library], outcomes: Sequence[Outcome]) -> Iterator[tuple[str, int, list[Outcome]]]:
    """``seen`` and ``first_sight``: how many libraries, and what came of their findings."""
    for side, kept in (("seen", False), ("first_sight", True)):
        names = {one.library for one in libraries if at_first_sight(one.library) is kept}
        yield side, len(names), [one for one in outcomes if one.library in names]


def lines(libraries: Sequence[Library], outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A table for what was seen, and one for first sight."""
    for side, count, rows in sides(libraries, outcomes):
        yield f"{side.replace('_', ' ')}: {count} libraries"
        yield f"{'':18} {'all':>5} {'share':>6}  " + "  ".join(OUTCOME)
        for name, counted in groups(rows):
            part, whole = counted.decided
            share = f"{100 * part / whole:5.0f}%" if whole else f"{'-':>6}"
            numbers = "  ".join(f"{counted.counts[outcome]:{len(outcome)}}" for outcome in OUTCOME)
            yield f"{name:18} {counted.all:5} {share}  {numbers}"
        yield ""
    yield f"share: '{CONFIRMED}' of these and '{RAN}'; by scenario a finding counts in each that it names"
    real = findings(one for one in outcomes if known(one))
    said = ", ".join(f"{count} {outcome}" for outcome, count in real.counts.most_common()) or "none was run"
    yield f"of {real.all} findings that benchmarks/found shows to be real: {said}"


def known(one: Outcome) -> bool:
    """Whether a case of ``benchmarks/found`` shows, by a run built by hand, that the finding is real."""
    return (one.library, one.release, one.path, one.line, one.code) in _shown()


@cache
def _shown() -> frozenset[tuple[str, str, str, int, str | None]]:
    cases = load().values()
    return frozenset((case.package, case.release, case.path, case.line, case.code) for case in cases)


def figures(count: int, outcomes: Sequence[Outcome]) -> Figures:
    """What ``docs/figures.md`` shows of one side."""
    shown = {**dict(groups(outcomes)), "known to be real": findings(one for one in outcomes if known(one))}
    return {
        "libraries": count,
        "findings": shown["all"].all,
        "outcomes": {
            name: {"confirmed of decided": counted.decided, **{one: counted.counts[one] for one in OUTCOME}}
            for name, counted in shown.items()
        },
    }
