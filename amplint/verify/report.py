"""Verdicts as text for people: one block a target, rows that differ only in scenario and mode together."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.files import display_path
from amplint.verify.verdict import FIX_SAID, FixEffect, Row, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amplint.report import Line

_STYLE = {
    Verdict.CONFIRMED: "bold red",
    Verdict.CLEAN: "green",
    Verdict.NOT_REPRODUCED: "yellow",
    Verdict.NOT_REACHED: "yellow",
    Verdict.NOT_RUNNABLE: "magenta",
    Verdict.NEEDS_GPU: "cyan",
}
_ORDER = list(Verdict)


def render(rows: Sequence[Row], names: Mapping[str, str]) -> Iterator[Line]:
    """The report; ``names`` maps codes to names of rules."""
    for target, of_target in groupby(rows, key=lambda row: row.target):
        yield from _block(target, list(of_target), names)
        yield []


def summary(rows: Sequence[Row]) -> str:
    """One line: how many findings came to which verdict, at best, and what was confirmed besides."""
    best: dict[tuple[str, str | None], Verdict] = {}
    for row in rows:
        key = (row.target, row.fingerprint or (row.error if row.verdict is Verdict.CONFIRMED else None))
        if row.fingerprint is None and row.verdict is not Verdict.CONFIRMED:
            continue
        best[key] = min(best.get(key, row.verdict), row.verdict, key=_ORDER.index)
    targets = len({row.target for row in rows})
    text = f"Ran {targets} target{'' if targets == 1 else 's'}"
    if not best:
        return f"{text}: nothing to confirm."
    counts = Counter(best.values())
    return f"{text}: " + ", ".join(f"{counts[v]} {v.value.replace('-', ' ')}" for v in Verdict if counts[v]) + "."


def _block(target: str, rows: list[Row], names: Mapping[str, str]) -> Iterator[Line]:
    path, _, name = target.rpartition("::")
    how = next((row.how for row in rows if row.how), None)
    yield [(f"{display_path(Path(path))}::{name}", "bold"), (f"  ({how})" if how else "", "dim")]
    groups: dict[tuple[object, ...], list[Row]] = {}
    best: dict[str | None, Verdict] = {}
    for row in rows:
        best[row.fingerprint] = min(best.get(row.fingerprint, row.verdict), row.verdict, key=_ORDER.index)
    for row in rows:
        if row.fingerprint and row.verdict is not best[row.fingerprint]:
            continue
        said = (row.verdict, row.code, row.fingerprint, row.location, _kind(row.error), row.fix, row.device)
        key = (*said, row.built, row.variant)
        groups.setdefault(key, []).append(row)
    width = max(len(row.verdict.value) for row in rows)
    advice = ""
    for of_group in sorted(groups.values(), key=lambda group: _ORDER.index(group[0].verdict)):
        first = of_group[0]
        what = f"{first.code} {names[first.code]}" if first.code is not None and first.code in names else ""
        place = first.location or first.claimed_at
        where = f"{display_path(Path(place[0]))}:{place[1]}" if place else ""
        text = " at ".join(part for part in (what, where) if part)
        policy = f" ({first.device} policy)" if len({row.device for row in rows}) > 1 else ""
        yield [
            (f"  {first.verdict.value:<{width}}  ", _STYLE[first.verdict]),
            (f"{text}  " if text else "", "bold" if first.verdict is Verdict.CONFIRMED else ""),
            (f"{_cells(of_group)}{policy}", ""),
        ]
        if first.error:
            yield [(" " * (width + 4) + first.error, "dim")]
        if first.built:
            ran = f"ran {first.built} with {first.inputs}" if first.inputs else f"built {first.built}"
            yield [(" " * (width + 4) + ran + (f", {first.variant}" if first.variant else ""), "dim")]
        if first.fix is not None:
            worst = max((row.largest_error or 0.0 for row in of_group), default=0.0)
            error = f" (largest relative error {worst:.2g})" if worst else ""
            yield [
                (" " * (width + 4) + FIX_SAID[first.fix] + error, "green" if first.fix is FixEffect.CURES else "yellow")
            ]
        if first.verdict is Verdict.CONFIRMED:
            yield [(" " * (width + 4) + first.command(lambda path: str(display_path(Path(path)))), "blue")]
        advice = advice or first.advice
    for line in advice.splitlines():
        yield [(f"  {line}".rstrip(), "")]


def _kind(error: str | None) -> str | None:
    """Errors that differ only in the low dtype are one line of the report."""
    if error is None:
        return None
    for spelling in ("BFloat16", "Half", "bfloat16", "float16"):
        error = error.replace(spelling, "*")
    return error


def _cells(rows: list[Row]) -> str:
    """``autocast-fp16, autocast-bf16: train, eval``, scenarios with the same modes together."""
    modes: dict[str, list[str]] = {}
    for row in rows:
        modes.setdefault(row.scenario, []).append(row.mode)
    together: dict[tuple[str, ...], list[str]] = {}
    for scenario, names in modes.items():
        together.setdefault(tuple(dict.fromkeys(names)), []).append(scenario)
    return "; ".join(f"{', '.join(scenarios)}: {', '.join(names)}" for names, scenarios in together.items())
