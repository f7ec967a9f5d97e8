"""The figures of a round: what its readers say, each alone and pooled, and how often they agree.

Pooled: a finding counts for each verdict with the share of its readers who gave it.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from judged.rows import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from judged.rounds import Drawn

SHOWN = ("right", "arguable", "wrong")


def lines(name: str, rows: Sequence[Drawn]) -> Iterator[str]:
    """A round as a table."""
    judged = [one for one in rows if one.verdicts]
    packages = len({one.place.package for one in rows})
    versions = ", ".join(sorted({one.amplint for one in rows}))
    yield f"{name}: {len(rows)} findings from {packages} packages, by amplint {versions}; {len(judged)} are judged"
    if not judged:
        return
    yield f"{'':10} {'judged':>6} " + " ".join(f"{verdict:>8}" for verdict in SHOWN) + "  in percent"
    for group, counts in groups(judged).items():
        total = sum(counts.values())
        yield f"{group:10} {total:6.0f} " + " ".join(f"{100 * counts[verdict] / total:8.1f}" for verdict in SHOWN)
    both, same, opposed = agreement(judged)
    yield f"judged twice: {both}, {same} with the same verdict, {opposed} right for one and wrong for the other"


def groups(judged: Sequence[Drawn]) -> dict[str, Mapping[str, float]]:
    """Counts by verdict: each reader's, and pooled of all, of each certainty, severity and rule."""
    readers = sorted({reader for one in judged for reader in one.verdicts})
    found: dict[str, Mapping[str, float]] = {
        f"reader {reader}": Counter(one.verdicts[reader].verdict for one in judged if reader in one.verdicts)
        for reader in readers
    }
    found["pooled"] = pooled(judged)
    for name in ("certainty", "severity", "code"):
        for value in sorted({getattr(one, name) for one in judged}):
            found[value] = pooled(one for one in judged if getattr(one, name) == value)
    return found


def pooled(judged: Iterable[Drawn]) -> Mapping[str, float]:
    """Counts in which each finding is one, divided among the verdicts of its readers."""
    counts: dict[str, float] = dict.fromkeys(VERDICTS, 0.0)
    for one in judged:
        for said in one.verdicts.values():
            counts[said.verdict] += 1 / len(one.verdicts)
    return counts


def agreement(judged: Iterable[Drawn]) -> tuple[int, int, int]:
    """Pairs of verdicts on a finding: all, the same, and right beside wrong."""
    pairs = [
        {first.verdict, second.verdict} for one in judged for first, second in combinations(one.verdicts.values(), 2)
    ]
    return len(pairs), sum(len(pair) == 1 for pair in pairs), sum(pair == {"right", "wrong"} for pair in pairs)


def figures(rows: Sequence[Drawn]) -> dict[str, dict[str, str | int]]:
    """What ``docs/figures.md`` shows of a round: the table, with shares in percent."""
    shown: dict[str, dict[str, str | int]] = {}
    for group, counts in groups([one for one in rows if one.verdicts]).items():
        total = sum(counts.values())
        shown[group] = {"judged": round(total)}
        shown[group] |= {verdict: f"{100 * counts[verdict] / total:.0f}%" for verdict in SHOWN}
    return shown
