"""The table of verdicts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dtype_truth.compare import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtype_truth.compare import Compared
    from dtype_truth.truth import Recording

Counts = Counter[str]
"""How many rows have each verdict, and under ``no row`` how many of the unknown ones have no inferred row at all."""


def count(compared: Iterable[Compared]) -> Counts:
    counts: Counts = Counter()
    for one in compared:
        counts[one.verdict] += 1
        counts["no row"] += one.inferred is None
    return counts


def lines(recordings: Sequence[Recording], compared: Sequence[Compared], *, models: bool = True) -> list[str]:
    """A line for each model and way of running, unless ``models`` is false, then the totals."""
    width = max([len("total"), *(len(made.case.model) for made in recordings)])
    head = f"{'model':{width}}  {'scenario/device':18} {'file':8} {'rows':>6} " + " ".join(f"{v:>8}" for v in VERDICTS)
    text = [f"{head} {'(no row)':>9} {'left out':>9}"]
    groups: dict[object, list[Compared]] = {}
    for one in compared:
        groups.setdefault(one.case, []).append(one)
        groups.setdefault((one.case.scenario, one.case.device), []).append(one)
    for made in recordings if models else ():
        way = f"{made.case.scenario}/{made.case.device}"
        if made.error is not None:
            text.append(f"{made.case.model:{width}}  {way:18} {made.error[:110]}")
            continue
        rows = groups.get(made.case, [])
        text.append(_line(made.case.model, way, "own", width, [one for one in rows if one.own]))
        text.append(f"{_line('', '', 'other', width, [one for one in rows if not one.own])} {made.mixed:9}")
    ways = dict.fromkeys((made.case.scenario, made.case.device) for made in recordings)
    for scenario, device in [*ways, ("all", "")]:
        rows = list(compared) if scenario == "all" else groups.get((scenario, device), [])
        way = f"{scenario}/{device}".rstrip("/")
        text.append(_line("total", way, "own", width, [one for one in rows if one.own]))
        text.append(_line("", "", "other", width, [one for one in rows if not one.own]))
        text.append(_line("", "", "both", width, rows))
    return text


def figures(compared: Sequence[Compared]) -> dict[str, dict[str, dict[str, int | str]]]:
    """What ``docs/figures.md`` shows: shares of the verdicts, by way of running."""
    groups: dict[str, list[Compared]] = {"all": list(compared)}
    for one in compared:
        groups.setdefault(f"{one.case.scenario}/{one.case.device}", []).append(one)
    shown: dict[str, dict[str, int | str]] = {}
    for name, rows in groups.items():
        counts = count(rows)
        shares = {verdict: f"{100 * counts[verdict] / max(len(rows), 1):.2f}%" for verdict in VERDICTS}
        shown[name] = {"expressions": len(rows), **shares}
    return {"verdicts": shown}


def _line(model: str, way: str, files: str, width: int, rows: Sequence[Compared]) -> str:
    counts = count(rows)
    shares = " ".join(f"{100 * counts[verdict] / max(len(rows), 1):7.2f}%" for verdict in VERDICTS)
    return f"{model:{width}}  {way:18} {files:8} {len(rows):6} {shares} {counts['no row']:9}"
