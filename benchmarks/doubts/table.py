"""What each doubt costs and saves: the findings that would be told, or be proven, were it switched off alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from halves import project

from amplint.finding import Doubt, Effect
from amplint.judge.doubts import TABLE
from doubts.labelled import ARGUABLE, RIGHT, UNKNOWN, WRONG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from figures.results import Figures

    from doubts.labelled import Labelled

_ROWS = {row.name: row for row in TABLE}
PACKAGES = 3
"""So many packages have to support a doubt."""
_HEADS = (("held", 6), ("alone", 7), (RIGHT, 7), (WRONG, 7), (ARGUABLE, 10), ("decides", 9), ("packages", 10))


def decided(row: Doubt, labelled: Iterable[Labelled]) -> list[Labelled]:
    """The findings that this doubt alone hides; of one that leaves them ``likely``, those that it alone keeps from
    being proven."""
    return [one for one in labelled if row.name in one.doubts and all(_is_idle(row, name) for name in one.doubts)]


def _is_idle(row: Doubt, name: str) -> bool:
    """Whether another doubt leaves as much as would be left without this one."""
    return name == row.name or (_ROWS[name].effect is Effect.LIKELY and row.effect is not Effect.LIKELY)


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the table: on how many labelled findings it held, and those that it alone decided.

    ``unjudged`` are those that it alone decided in whole releases.
    """

    row: Doubt
    held: int
    alone: tuple[Labelled, ...]
    unjudged: tuple[Labelled, ...]

    @property
    def costs(self) -> Counter[str]:
        """Right findings that it hides, or keeps from being proven, by package."""
        return Counter(project(one.package) for one in self.alone if one.verdict == RIGHT)

    @property
    def saves(self) -> Counter[str]:
        """Wrong and arguable ones, by package."""
        return Counter(project(one.package) for one in self.alone if one.verdict in (WRONG, ARGUABLE))

    @property
    def packages(self) -> set[str]:
        """Where it decides a finding that is not known to be right."""
        return {*self.saves, *(project(one.package) for one in self.unjudged)}

    @property
    def verdict(self) -> str:
        """What the figures say of the row: it has support, it costs more than it saves, or they are too few."""
        if not self.alone and not self.unjudged:
            return "decides nothing"
        if self.costs.total() > self.saves.total():
            return "costs more than it saves"
        return "supported" if len(self.packages) >= PACKAGES else "too few packages"


def measured(found: Sequence[Labelled]) -> Iterator[Measured]:
    """Every row of the table."""
    for row in TABLE:
        held = [one for one in found if row.name in one.doubts]
        labelled = [one for one in held if one.verdict != UNKNOWN]
        unjudged = [one for one in held if one.verdict == UNKNOWN]
        yield Measured(row, len(labelled), tuple(decided(row, labelled)), tuple(decided(row, unjudged)))


def lines(found: Sequence[Labelled]) -> Iterator[str]:
    """A line for each doubt, with the packages in which it costs right findings or saves others."""
    labelled = [one for one in found if one.verdict != UNKNOWN]
    yield f"{len(labelled)} labelled findings, {len(told(labelled))} of them told: {_counted(told(labelled))}"
    yield f"{_unjudged(found)} findings in whole releases"
    yield f"{'doubt':24}{'effect':9}" + "".join(f"{name:>{width}}" for name, width in _HEADS)
    for one in measured(found):
        verdicts = Counter(each.verdict for each in one.alone)
        judged = (verdicts[verdict] for verdict in (RIGHT, WRONG, ARGUABLE))
        figures = (one.held, len(one.alone), *judged, len(one.unjudged), len(one.packages))
        numbers = "".join(f"{number:>{width}}" for number, (_, width) in zip(figures, _HEADS, strict=True))
        yield f"{one.row.name:24}{one.row.effect.value:9}{numbers}  {one.verdict}"
        for word, packages in (("costs", one.costs), ("saves", one.saves)):
            if packages:
                yield f"  {word}: {_shown(packages)}"


def figures(found: Sequence[Labelled]) -> Figures:
    """What is kept for the page."""
    labelled = [one for one in found if one.verdict != UNKNOWN]
    verdicts = Counter(one.verdict for one in told(labelled))
    rows = {
        one.row.name: {
            "effect": one.row.effect.value,
            "rules": " ".join(one.row.codes) or "all",
            "held": one.held,
            "alone": len(one.alone),
            "costs right ones": one.costs.total(),
            "saves others": one.saves.total(),
            "decides unjudged": len(one.unjudged),
            "in packages": len(one.packages),
            "so": one.verdict,
        }
        for one in measured(found)
    }
    said = {
        "labelled findings": len(labelled),
        "told": len(told(labelled)),
        **{f"told and {name}": verdicts[name] for name in (RIGHT, WRONG, ARGUABLE)},
        "findings in whole releases": _unjudged(found),
        "releases": len({one.package for one in found if one.verdict == UNKNOWN}),
    }
    return {**said, "doubts": rows}


def _unjudged(found: Iterable[Labelled]) -> int:
    return sum(one.verdict == UNKNOWN for one in found)


def told(labelled: Iterable[Labelled]) -> list[Labelled]:
    """Those that no doubt hides."""
    return [one for one in labelled if all(_ROWS[name].effect is Effect.LIKELY for name in one.doubts)]


def _counted(labelled: Iterable[Labelled]) -> str:
    return _shown(Counter(one.verdict for one in labelled))


def _shown(counted: Counter[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in sorted(counted.items()))
