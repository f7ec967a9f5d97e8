"""What stands on ``docs/figures.md`` of this benchmark."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from figures import results
from halves import KEPT, LEARNED

from mutants.fates import CONFIRMED, CURED, CURED_FATES, FIXED_FATES, SOME, VERIFIED_FATES, WORSE
from mutants.table import CERTAINTIES, SCENARIOS, summed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from figures.results import Figures, Value

    from mutants.table import Count, Tables

COMMAND = "python benchmarks/mutants --figures"
ABOUT = (
    "Code of libraries that runs clean, broken as people break it and labelled by running it: what `amplint check` "
    "finds of what hurts, and claims of what is harmless, by mutant and scenario. Seen is the half of libraries to "
    "learn from, first sight the half that is kept back. A mean counts each operator the same."
)
COMMAND_NAMED = "python benchmarks/mutants --named --figures"
ABOUT_NAMED = (
    "The mutants of [mutants](#mutants) where the scenarios are named (`--scenario`), as by who knows that the code "
    "runs so: what holds under one of them only, and what is in preview, is told too."
)
ABOUT_CURED = (
    "Mutants that hurt, after `amplint check --fix --unsafe-fixes`: those in which amplint finds what they do wrong, "
    "with a fix, are run again in every scenario, beside the unbroken original. *cured*: it equals that within "
    "rounding; *made worse*: it now hurts where it did not, or is another program in float32. Seen and first sight as "
    "in [mutants](#mutants)."
)
ABOUT_VERIFIED = (
    "Classes that an edit makes raise, given to `amplint verify`, which builds and calls them by itself. Those count "
    "that verify builds, unbroken, from their signature alone; what it confirms of these does not. Seen and first "
    "sight as in [mutants](#mutants)."
)


def keep(tables: Mapping[str, Tables], labelled: Mapping[str, int], *, named: bool) -> None:
    """Keep the figures of both halves; ``labelled`` are all mutants that have a label."""
    sides = {half: _figures(one, labelled[half]) for half, one in tables.items()}
    name, command, about = ("mutants-named", COMMAND_NAMED, ABOUT_NAMED) if named else ("mutants", COMMAND, ABOUT)
    results.save(name, command, about=about, seen=sides.get(LEARNED), first_sight=sides.get(KEPT))


def keep_cured(fates: Mapping[str, Mapping[str, Counter[str]]], without: Mapping[str, int], most: int) -> None:
    """Keep what became of the mutants of both halves, by operator; ``without`` counts those that were not run again."""
    sides = {half: _cured(by, without[half], most) for half, by in fates.items()}
    command = f"python benchmarks/mutants --cured --most {most} --figures"
    results.save("mutants-cured", command, about=ABOUT_CURED, seen=sides.get(LEARNED), first_sight=sides.get(KEPT))


def keep_verified(
    fates: Mapping[str, Mapping[str, Counter[str]]], left_out: Mapping[str, Counter[str]], count: int, seed: int
) -> None:
    """Keep what verify said of the mutants of both halves, by operator; ``left_out``: those that do not count, and why.

    ``count`` and ``seed`` are those of the draw; a count of 0 is all of them.
    """
    sides = {half: _verified(by, left_out[half]) for half, by in fates.items()}
    draw = f" --count {count} --seed {seed}" if count else ""
    command = f"python benchmarks/mutants --verify{draw} --figures"
    results.save("mutants-verify", command, about=ABOUT_VERIFIED, seen=sides.get(LEARNED), first_sight=sides.get(KEPT))


def _cured(fates: Mapping[str, Counter[str]], without: int, most: int) -> Figures:
    counted = {operator: counts for operator, counts in sorted(fates.items()) if counts.total()}
    total = sum(counted.values(), Counter[str]())
    fixed = sum(total[fate] for fate in FIXED_FATES)
    return {
        "mutants that hurt": total.total(),
        "of an operator, at most": most,
        **{f"{fate}, of those found with a fix": (total[fate], fixed) for fate in (CURED, WORSE)},
        "could not be run again": without,
        "by operator": _by_operator(counted, CURED_FATES),
    }


def _verified(fates: Mapping[str, Counter[str]], left_out: Counter[str]) -> Figures:
    total = sum(counts.total() for counts in fates.values())
    confirmed = {fate: sum(counts[fate] for counts in fates.values()) for fate in (CONFIRMED, SOME)}
    return {
        "mutants drawn": total + left_out.total(),
        "of classes built from their signature alone": total,
        "confirmed in every scenario": (confirmed[CONFIRMED], total),
        "confirmed in some scenarios only": (confirmed[SOME], total),
        "by operator": _by_operator(fates, VERIFIED_FATES),
        "left out": {why: {"mutants": number} for why, number in left_out.most_common()},
    }


def _by_operator(fates: Mapping[str, Counter[str]], names: Sequence[str]) -> dict[str, dict[str, Value]]:
    rows = {operator: {name: counts[name] for name in names} for operator, counts in sorted(fates.items())}
    return {"all": {name: sum(row[name] for row in rows.values()) for name in names}, **rows}


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
