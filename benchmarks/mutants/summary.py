"""What stands on ``docs/figures.md`` of this benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import results
from halves import KEPT, LEARNED

from mutants.table import CERTAINTIES, SCENARIOS, summed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from figures.results import Figures, Value

    from mutants.table import Count, Tables

COMMAND = "python benchmarks/mutants --figures"
ABOUT = (
    "Code of libraries that runs clean, broken as people break it and labelled by running it: what `amplint check` "
    "finds of what hurts, and claims of what is harmless, by mutant and scenario. Seen is the half of libraries to "
    "learn from, first sight the half that is kept back. A mean counts each operator the same."
)


def keep(tables: Mapping[str, Tables], labelled: Mapping[str, int]) -> None:
    """Keep the figures of both halves; ``labelled`` are all mutants that have a label."""
    sides = {half: _figures(one, labelled[half]) for half, one in tables.items()}
    results.save("mutants", COMMAND, about=ABOUT, seen=sides.get(LEARNED), first_sight=sides.get(KEPT))


def _figures(tables: Tables, labelled: int) -> Figures:
    operators = {operator: summed(by.values()) for operator, by in sorted(tables.cells.items())}
    scenarios = {name: [by[name] for by in tables.cells.values() if name in by] for name in SCENARIOS}
    return {
        "mutants with a label": labelled,
        "drawn of them": tables.mutants,
        "found, mean of operators": _percent(one.share for one in operators.values() if one.hurting),
        **{
            f"{kind} errors claimed of harmless ones, mean of operators": _percent(
                one.wrong[kind] / one.harmless for one in operators.values() if one.harmless
            )
            for kind in CERTAINTIES
        },
        "errors claimed on rows of originals that ran clean": sum(tables.refuted.values()),
        "rows of originals that ran clean": tables.clean_rows,
        "by scenario": {
            name: _shares(summed(counts))
            | {"found, mean of operators": _percent(one.share for one in counts if one.hurting)}
            for name, counts in scenarios.items()
        },
        "by operator": {operator: _shares(count) for operator, count in operators.items()},
    }


def _shares(count: Count) -> dict[str, Value]:
    return {
        "found": (count.found, count.hurting),
        **{f"{kind} on harmless": (count.wrong[kind], count.harmless) for kind in (*CERTAINTIES, "warning")},
        "undecided": count.undecided,
    }


def _percent(shares: Iterable[float]) -> str:
    found = list(shares)
    return f"{100 * sum(found) / len(found):.1f}%" if found else "none"
