"""What stands on ``docs/figures.md`` of this benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import results

from corpus import table
from corpus.rows import DECIDABLE_IN_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from figures.results import Figures, Value

    from corpus.judging import Judged, JudgedNegative

COMMAND = "python benchmarks/corpus --clones FOLDER --figures"
ABOUT = "Fixed bugs of public repositories: found before their fix, gone after it, in single files at a commit."


def keep(judged: Sequence[Judged], negatives: Sequence[JudgedNegative], lacking: int) -> None:
    """Keep the figures; ``lacking`` files could not be had."""
    results.save("corpus", COMMAND, about=ABOUT, seen=_figures(judged, negatives, lacking))


def _figures(judged: Sequence[Judged], negatives: Sequence[JudgedNegative], lacking: int) -> Figures:
    in_file = [one for one in judged if one.case.decidable in DECIDABLE_IN_FILE]
    names = sorted({one.case.label for one in judged})
    labels = {name: [one for one in judged if one.case.label == name] for name in names}
    return {
        "files that could not be had": lacking,
        "look-alikes flagged": (sum(bool(one.alarms) for one in negatives), len(negatives)),
        "bugs": {
            name: _shares(table.figures(rows))
            for name, rows in {"all": judged, "decidable in one file": in_file, **labels}.items()
        },
    }


def _shares(counted: table.Figures) -> dict[str, Value]:
    return {
        "found": (counted.hits, counted.cases),
        "by a cause": (counted.by_cause, counted.cases),
        "gone after the fix": (counted.fixed, counted.fixable),
        "findings per 10,000 lines": round(counted.density, 1),
    }
