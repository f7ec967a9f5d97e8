"""What stands on ``docs/figures.md`` of this benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import results

from corpus import table
from corpus.rows import DECIDABLE_IN_FILE, KEPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from figures.results import Figures, Value

    from corpus.judging import Outcome

COMMAND = "python benchmarks/corpus --clones FOLDER --figures"
SEEN = "Fixed bugs of public repositories that amplint was mended on: found before their fix, gone after it, in whole \
checkouts with default options; alone: each file by itself with every default scenario named."
MINED = "The same of repositories that were mined later, halved by name before they were read: one half to learn from, \
one kept back."


def keep(outcomes: Mapping[str, Outcome]) -> None:
    """Keep the figures of each list."""
    mined = {name: _figures(outcome) for name, outcome in outcomes.items() if name in ("learned", KEPT)}
    for name, outcome in outcomes.items():
        if name not in mined:
            results.save("corpus", COMMAND, about=SEEN, seen=_figures(outcome))
    if mined:
        results.save("mined-bugs", COMMAND, about=MINED, seen=mined.get("learned"), first_sight=mined.get(KEPT))


def _figures(outcome: Outcome) -> Figures:
    judged = outcome.judged
    in_file = [one for one in judged if one.case.decidable in DECIDABLE_IN_FILE]
    names = sorted({one.case.label for one in judged})
    labels = {name: [one for one in judged if one.case.label == name] for name in names}
    alone = {one.case.id for one in outcome.alone if one.hits}
    return {
        "repositories": len({one.case.before.repository for one in judged}),
        "files that could not be had": outcome.lacking,
        "look-alikes flagged": (sum(bool(one.alarms) for one in outcome.negatives), len(outcome.negatives)),
        "bugs": {
            name: _shares(table.figures(rows), sum(one.case.id in alone for one in rows))
            for name, rows in {"all": judged, "decidable in one file": in_file, **labels}.items()
        },
    }


def _shares(counted: table.Figures, alone: int) -> dict[str, Value]:
    return {
        "found": (counted.hits, counted.cases),
        "alone": (alone, counted.cases),
        "by a cause": (counted.by_cause, counted.cases),
        "gone after the fix": (counted.fixed, counted.fixable),
        "findings per 10,000 lines": round(counted.density, 1),
    }
