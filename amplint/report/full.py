"""Findings in their source: every place that decided a dtype, in the manner of rustc."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from amplint.files import place_name
from amplint.finding import Applicability, Certainty, Edit, Finding, Severity
from amplint.source import Location, Source, SourceError, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amplint.report import Context, Line

TAB = 4
_GUTTER = "bold blue"
_HOW = {
    Applicability.SAFE: "safe fix: --fix",
    Applicability.UNSAFE: "unsafe fix: --fix --unsafe-fixes",
    Applicability.DISPLAY: "shown only",
}


@dataclass(frozen=True, slots=True)
class _Mark:
    """A span to underline and what to say beside it; ``primary`` for the finding's own."""

    span: Span
    label: str
    primary: bool


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings with their source frames, an empty line after each; at the end those that a run refutes."""
    refuted = [finding for finding in findings if context.refuted(finding)]
    for finding in (finding for finding in findings if finding not in refuted):
        yield from _finding(finding, context)
        yield []
    if refuted:
        yield [("Ran in every scenario named and did not fail; not counted:", "bold")]
        yield []
    for finding in refuted:
        yield from _finding(finding, context)
        yield []


def _finding(finding: Finding, context: Context) -> Iterator[Line]:
    colour = "red" if finding.severity is Severity.ERROR else "yellow"
    head = f"{finding.severity.value}[{finding.code}]"
    yield [(head, f"bold {colour}"), (f" {finding.name}: {finding.message}", "bold")]
    own = finding.filename, finding.cell
    marks: dict[tuple[Path, int | None], list[_Mark]] = {own: [_Mark(finding.span, "", True)]}
    for cause in finding.causes:
        if (cause.filename, cause.cell) == own and cause.span == finding.span:
            marks[own][0] = _Mark(finding.span, cause.message, True)
        else:
            marks.setdefault((cause.filename, cause.cell), []).append(_Mark(cause.span, cause.message, False))
    width = max(len(str(mark.span.end.row)) for of_file in marks.values() for mark in of_file)
    for of, of_file in marks.items():
        start = (finding.span if of == own else of_file[0].span).start
        yield [(" " * width + "--> ", _GUTTER), (f"{place_name(*of)}:{start.row}:{start.column}", "")]
        yield from _frame(context.source(*of), of_file, width, colour)
    for of, places in groupby(finding.also, key=lambda place: (place.filename, place.cell)):
        where = ", ".join(f"{place.span.start.row}:{place.span.start.column}" for place in places)
        yield _note(width, "also at", f"{place_name(*of)}:{where}")
    if finding.scenarios:
        yield _note(width, "scenarios", f"{', '.join(finding.scenarios)} (device {finding.device})")
    if finding.certainty is not Certainty.PROVEN:
        yield _note(width, "certainty", finding.certainty.value)
    proof = context.proof(finding)
    if proof is not None:
        yield _note(width, "verdict", str(proof))
        if proof.row is not None and proof.row.built:
            given = f" with {proof.row.inputs}" if proof.row.inputs else ""
            yield _note(width, "ran", f"{proof.row.built}{given}")
    for held in finding.doubts if context.pedantic else ():
        cell = f"cell {held.cell}, " if held.cell is not None else ""
        where = f"{cell}line {held.span.start.row}: " if held.span is not None else ""
        yield _note(width, "doubt", f"{where}{held.doubt.message} ({held.doubt.name})")
    if finding.fix is not None:
        yield _note(width, "help", f"{finding.fix.message} ({_HOW[finding.fix.applicability]})")
        for cell, edits in groupby(finding.fix.edits, key=lambda edit: edit.cell):
            if cell != finding.cell:
                yield [(" " * width + "--> ", _GUTTER), (place_name(finding.filename, cell), "")]
            yield from _change(list(edits), context.source(finding.filename, cell), width)


def _note(width: int, key: str, text: str) -> Line:
    return [(" " * (width + 1) + "= ", _GUTTER), (f"{key}: ", "bold"), (text, "")]


def _gutter(width: int, row: int | None = None) -> tuple[str, str]:
    return (f"{'' if row is None else row:>{width}} | ", _GUTTER)


def _frame(source: Source, marks: list[_Mark], width: int, colour: str) -> Iterator[Line]:
    """The marked lines in source order, gaps shown as ``...``."""
    yield [_gutter(width)]
    places = sorted(
        {_Underline.first(mark) for mark in marks} | {_Underline.last(mark) for mark in marks if _long(mark)}
    )
    previous = 0
    for row, of_row in groupby(places, key=lambda place: place.row):
        if previous and row == previous + 2:
            yield [_gutter(width, row - 1), (_shown(source.line(row - 1)), "")]
        elif previous and row > previous + 2:
            yield [("...", _GUTTER)]
        line = source.line(row)
        yield [_gutter(width, row), (_shown(line), "")]
        for place in of_row:
            yield place.render(line, width, colour)
        previous = row
    yield [_gutter(width)]


def _long(mark: _Mark) -> bool:
    return mark.span.end.row > mark.span.start.row


@dataclass(frozen=True, slots=True, order=True)
class _Underline:
    """Carets under part of one row: columns from 1, ``end`` exclusive, 0 for the end of the line."""

    row: int
    start: int
    end: int
    primary: bool
    label: str

    @classmethod
    def first(cls, mark: _Mark) -> _Underline:
        span = mark.span
        if _long(mark):
            return cls(span.start.row, span.start.column, 0, mark.primary, "")
        return cls(span.start.row, span.start.column, span.end.column, mark.primary, mark.label)

    @classmethod
    def last(cls, mark: _Mark) -> _Underline:
        return cls(mark.span.end.row, 0, mark.span.end.column, mark.primary, mark.label)

    def render(self, line: str, width: int, colour: str) -> Line:
        start = self.start or len(line) - len(line.lstrip()) + 1
        end = self.end or len(line) + 1
        before = _columns(line[: start - 1])
        length = max(_columns(line[: end - 1]) - before, 1)
        style = f"bold {colour}" if self.primary else _GUTTER
        carets = ("^" if self.primary else "-") * length
        return [_gutter(width), (" " * before, ""), (f"{carets} {self.label}".rstrip(), style)]


def _change(edits: list[Edit], source: Source, width: int) -> Iterator[Line]:
    """The lines that edits change, before and after."""
    from difflib import SequenceMatcher

    try:
        places = [(first, *_rewritten(source, first, last, of_rows)) for first, last, of_rows in _by_rows(edits)]
    except (SourceError, IndexError):
        return
    for top, before, after in places:
        for tag, first, last, new_first, new_last in SequenceMatcher(None, before, after).get_opcodes():
            if tag == "equal":
                continue
            for row in range(first, last):
                yield [_gutter(width, top + row), (f"- {_shown(before[row])}", "red")]
            for row in range(new_first, new_last):
                yield [_gutter(width), (f"+ {_shown(after[row])}", "green")]


def _by_rows(edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Edits grouped by the rows that they touch: first row, last row, edits."""
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(set(edits)):
        first, last = edit.span.start.row, edit.span.end.row
        if groups and first <= groups[-1][1]:
            top, bottom, members = groups[-1]
            groups[-1] = (top, max(bottom, last), [*members, edit])
        else:
            groups.append((first, last, [edit]))
    return groups


def _rewritten(source: Source, first: int, last: int, edits: list[Edit]) -> tuple[list[str], list[str]]:
    """Some rows before and after the edits that lie in them."""
    last = min(last, len(source.lines))
    position, end = source.offset(Location(first, 1)), source.offset(Location(last + 1, 1))
    old, new = source.text[position:end], ""
    for edit in edits:
        new += source.text[position : source.offset(edit.span.start)] + edit.content
        position = source.offset(edit.span.end)
    new += source.text[position:end]
    return Source(source.path, old.encode()).lines, Source(source.path, new.encode()).lines


def _shown(line: str) -> str:
    """A line as printed: tabs as spaces, control characters harmless."""
    out, column = [], 0
    for character in line.rstrip("\r\n"):
        text = " " * (TAB - column % TAB) if character == "\t" else character if character.isprintable() else "?"
        if unicodedata.category(character) in ("Mn", "Me"):
            text = character
        out.append(text)
        column += _width(character, column)
    return "".join(out)


def _columns(text: str) -> int:
    """How many terminal columns text takes at the start of a line."""
    column = 0
    for character in text:
        column += _width(character, column)
    return column


def _width(character: str, column: int) -> int:
    if character == "\t":
        return TAB - column % TAB
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
