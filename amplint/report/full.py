"""Findings in their source: every place that decided a dtype, in the manner of rustc."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from amplint.files import place_name
from amplint.finding import Certainty, Finding, Severity
from amplint.report.account import NOT_COUNTED, help_text, place
from amplint.report.changes import change
from amplint.report.columns import columns, fold, printable
from amplint.report.frames import GUTTER, Mark, frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amplint.finding import Edit, Fix
    from amplint.report import Context, Line
    from amplint.source import Span

_INDENT = 4
"""Of what follows the first line of a long message."""
_LEAST = 20
"""Columns that text is given however narrow the terminal is."""


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings with their source frames, an empty line after each; at the end those that a run refutes."""
    refuted = [finding for finding in findings if context.refuted(finding)]
    fixes = _Fixes()
    for finding in (finding for finding in findings if finding not in refuted):
        yield from _finding(finding, context, fixes)
        yield []
    if refuted:
        yield [(f"{NOT_COUNTED}:", "bold")]
        yield []
    for finding in refuted:
        yield from _finding(finding, context, fixes)
        yield []


class _Fixes:
    """The fixes that were shown: findings may share one, which rewrites all that it is about."""

    def __init__(self) -> None:
        self._shown: dict[tuple[Path, int, Edit], tuple[tuple[Edit, ...], Finding]] = {}

    def earlier(self, finding: Finding, fix: Fix) -> Finding | None:
        """The finding with which the same fix was shown; None where it has to be shown with this one."""
        if not fix.edits:
            return None
        edits, other = self._shown.setdefault((finding.filename, len(fix.edits), fix.edits[0]), (fix.edits, finding))
        return other if other is not finding and (edits is fix.edits or edits == fix.edits) else None


def _finding(finding: Finding, context: Context, fixes: _Fixes) -> Iterator[Line]:
    colour = "red" if finding.severity is Severity.ERROR else "yellow"
    yield from _head(finding, colour, context)
    marks = _marks(finding)
    digits = max(len(str(mark.span.end.row)) for of_file in marks.values() for mark in of_file)
    room = _room(context, digits + len(" | "))
    for (path, cell), of_file in marks.items():
        yield [(" " * digits + "--> ", GUTTER), (place(path, cell, of_file[0].span.start), "")]
        yield from frame(context.source(path, cell), of_file, digits, colour, room)
    for key, text in _notes(finding, context):
        yield from _note(digits, key, text, context)
    if finding.fix is not None:
        text, earlier = help_text(finding, finding.fix, context), fixes.earlier(finding, finding.fix)
        if earlier is not None:
            yield from _note(digits, "help", f"{text}, as shown at {_line(earlier.cell, earlier.span)}", context)
            return
        yield from _note(digits, "help", text, context)
        shown = finding.cell
        for cell, edits in groupby(finding.fix.edits, key=lambda edit: edit.cell):
            if cell != shown:
                shown = cell
                yield [(" " * digits + "--> ", GUTTER), (printable(place_name(finding.filename, cell)), "")]
            yield from change(list(edits), context.source(finding.filename, cell), digits, room)


def _head(finding: Finding, colour: str, context: Context) -> Iterator[Line]:
    """Severity and code, which lead to the rule's page on a terminal that knows links, and the message."""
    head = f"{finding.severity.value}[{finding.code}]"
    room = _room(context, _INDENT)
    first = context.columns - columns(head) - 1 if context.columns is not None else None
    text, *more = fold(printable(f"{finding.name}: {finding.message}"), room, first)
    yield [(head, f"bold {colour}{context.link(finding)}"), (f" {text}", "bold")]
    for text in more:
        yield [(" " * _INDENT + text, "bold")]


def _room(context: Context, taken: int) -> int | None:
    """How many columns are left for text; None for any number."""
    return None if context.columns is None else max(context.columns - taken, _LEAST)


def _marks(finding: Finding) -> dict[tuple[Path, int | None], list[Mark]]:
    """What to underline in each file or cell, the finding's own place first; of one place all is said at once."""
    own = finding.filename, finding.cell
    said: dict[tuple[Path, int | None], dict[Span, list[str]]] = {own: {finding.span: []}}
    for cause in finding.causes:
        labels = said.setdefault((cause.filename, cause.cell), {}).setdefault(cause.span, [])
        if cause.message not in labels:
            labels.append(cause.message)
    return {
        of: [
            Mark(span, printable("; ".join(labels)), (of, span) == (own, finding.span)) for span, labels in here.items()
        ]
        for of, here in said.items()
    }


def _notes(finding: Finding, context: Context) -> Iterator[tuple[str, str]]:
    """What is said below the source, by its key."""
    for of, others in groupby(finding.also, key=lambda other: (other.filename, other.cell)):
        where = ", ".join(f"{other.span.start.row}:{other.span.start.column}" for other in others)
        yield "also at", f"{place_name(*of)}:{where}"
    if finding.scenarios:
        yield "scenarios", f"{', '.join(finding.scenarios)} (device {finding.device})"
    if finding.certainty is not Certainty.PROVEN:
        yield "certainty", finding.certainty.value
    proof = context.proof(finding)
    if proof is not None:
        yield "verdict", str(proof)
        if proof.row is not None and proof.row.built:
            yield "ran", f"{proof.row.built}{f' with {proof.row.inputs}' if proof.row.inputs else ''}"
    for held in finding.doubts if context.pedantic else ():
        where = f"{_line(held.cell, held.span)}: " if held.span is not None else ""
        yield "doubt", f"{where}{held.doubt.message} ({held.doubt.name})"


def _line(cell: int | None, span: Span) -> str:
    return f"cell {cell}, line {span.start.row}" if cell is not None else f"line {span.start.row}"


def _note(digits: int, key: str, text: str, context: Context) -> Iterator[Line]:
    indent = digits + len(f" = {key}: ")
    first, *more = fold(printable(text), _room(context, indent))
    yield [(" " * (digits + 1) + "= ", GUTTER), (f"{key}: ", "bold"), (first, "")]
    for text in more:
        yield [(" " * indent + text, "")]
