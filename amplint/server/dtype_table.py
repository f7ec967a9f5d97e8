"""A tensor's dtype in each scenario and where it was decided, as Markdown; and which expression a place is in."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from amplint.annotate.changes import Changes
from amplint.annotate.origins import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.annotate.origins import Place, Step
    from amplint.annotate.rows import FileDtypes, Row
    from amplint.source import Location, Span


def row_at(file: FileDtypes, location: Location) -> tuple[Span, Row] | None:
    """The innermost expression, or the variable that is assigned to, at a location, where a dtype of it is known."""
    assigned = Changes(file).assigned()
    around = [
        (span, row)
        for span, row in (*assigned, *((row.span, row) for row in file.rows))
        if span.start <= location < span.end
    ]
    if not around:
        return None
    span, row = max(around, key=lambda found: (found[0].start, _before(found[0])))
    return (span, row) if any(row.dtypes) else None


def _before(span: Span) -> tuple[int, int]:
    """Orders spans of one start, the longest first."""
    return -span.end.row, -span.end.column


def table(file: FileDtypes, row: Row, link: Callable[[Place], str]) -> str:
    """One line for all scenarios of one dtype from the same places; ``link`` names a place."""
    told = [(_decided(file, row, lane, link), scenario.name) for lane, scenario in enumerate(file.scenarios)]
    order = list(dict.fromkeys(what for what, _ in told))
    lines = ["| scenario | dtype | decided |", "|---|---|---|"]
    for what, scenarios in groupby(sorted(told, key=lambda one: order.index(one[0])), key=lambda one: one[0]):
        dtype, decided = what
        lines.append(f"| {', '.join(name for _, name in scenarios)} | {dtype} | {decided} |")
    if row.maybe:
        lines += ["", "If it is a tensor: nothing here calls the function."]
    return "\n".join(lines)


def _decided(file: FileDtypes, row: Row, lane: int, link: Callable[[Place], str]) -> tuple[str, str]:
    dtypes = row.dtypes[lane]
    if dtypes is None:
        return "not known", ""
    steps = Steps(lane)
    numbers = steps.of(row)
    places = [steps.all[number] for number in numbers]
    return " or ".join(f"`{name}`" for name in dtypes), "; ".join(_steps(places, link))


def _steps(places: list[Step], link: Callable[[Place], str]) -> Iterator[str]:
    for step in places:
        what = step.place.what or "paths with different dtypes meet"
        yield f"{link(step.place)}: {what.replace('|', '&#124;')}{', by autocast' if step.autocast else ''}"
