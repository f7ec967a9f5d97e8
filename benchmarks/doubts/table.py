"""What each doubt costs and saves: the findings that would be told, or be proven, were it switched off alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from amplint.finding import Doubt, Effect
from amplint.judge.doubts import TABLE
from doubts.labelled import ARGUABLE, RIGHT, WRONG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from doubts.labelled import Labelled

_ROWS = {row.name: row for row in TABLE}
_HEADS = (("held", 6), ("alone", 7), (RIGHT, 7), (WRONG, 7), (ARGUABLE, 10))


def decided(row: Doubt, labelled: Iterable[Labelled]) -> list[Labelled]:
    """The findings that this doubt alone hides; of one that leaves them ``likely``, those that it alone keeps from
    being proven."""
    return [one for one in labelled if row.name in one.doubts and all(_is_idle(row, name) for name in one.doubts)]


def _is_idle(row: Doubt, name: str) -> bool:
    """Whether another doubt leaves as much as would be left without this one."""
    return name == row.name or (_ROWS[name].effect is Effect.LIKELY and row.effect is not Effect.LIKELY)


def lines(labelled: Sequence[Labelled]) -> Iterator[str]:
    """A line for each doubt, with the packages in which it costs right findings or saves others."""
    told = [one for one in labelled if all(_ROWS[name].effect is Effect.LIKELY for name in one.doubts)]
    yield f"{len(labelled)} labelled findings, {len(told)} of them told: {_counted(one.verdict for one in told)}"
    yield f"{'doubt':24}{'effect':9}" + "".join(f"{name:>{width}}" for name, width in _HEADS)
    for row in TABLE:
        held = [one for one in labelled if row.name in one.doubts]
        alone = decided(row, held)
        verdicts = Counter(one.verdict for one in alone)
        figures = (len(held), len(alone), *(verdicts[verdict] for verdict in (RIGHT, WRONG, ARGUABLE)))
        numbers = "".join(f"{number:>{width}}" for number, (_, width) in zip(figures, _HEADS, strict=True))
        yield f"{row.name:24}{row.effect.value:9}{numbers}"
        for word, wanted in (("costs", (RIGHT,)), ("saves", (WRONG, ARGUABLE))):
            packages = _counted(one.package for one in alone if one.verdict in wanted)
            if packages:
                yield f"  {word}: {packages}"


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in sorted(Counter(words).items()))
