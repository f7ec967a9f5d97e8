"""Adding ``# amplint: ignore[CODE]`` to the lines of findings."""

from __future__ import annotations

import tokenize
from collections import defaultdict
from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.source import Location, Span
from amplint.suppression.directives import Form, directives, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.finding import Finding
    from amplint.source import Source
    from amplint.suppression.directives import Directive


def ignoring(source: Source, findings: Iterable[Finding]) -> list[Edit]:
    """The edits that give each finding a comment: in one of ours where there is one with codes, else at the end of the
    line, the first of the finding, or the last of its statement where none can stand there."""
    there = [one for one in directives(source) if one.form is Form.IGNORE and not one.blanket]
    merged: defaultdict[Directive, set[str]] = defaultdict(set)
    added: defaultdict[int, set[str]] = defaultdict(set)
    places = _Places(source)
    for finding in findings:
        ours = next((one for one in there if one.covers(finding)), None)
        if ours is not None:
            merged[ours].add(finding.code)
        else:
            added[places.row(finding.span.start.row)].add(finding.code)
    edits = [_merged(one, sorted(codes)) for one, codes in merged.items()]
    return edits + [_added(source, row, sorted(codes)) for row, codes in added.items()]


class _Places:
    """Where comments can stand: not behind a backslash, nor in a string."""

    def __init__(self, source: Source) -> None:
        self._free: set[int] = set()
        self._ends: list[int] = []
        strings = 0
        for token in tokens(source):
            kind = tokenize.tok_name[token.type]
            strings += kind.endswith("STRING_START") - kind.endswith("STRING_END")
            if token.type in (tokenize.NL, tokenize.NEWLINE) and not strings:
                self._free.add(token.start[0])
            if token.type == tokenize.NEWLINE:
                self._ends.append(token.start[0])

    def row(self, row: int) -> int:
        """The row itself, or the last one of its statement."""
        return row if row in self._free else next(end for end in self._ends if end >= row)


def _merged(ours: Directive, codes: list[str]) -> Edit:
    column = ours.selectors[-1].end if ours.selectors else ours.end - 1
    place = Location(ours.row, column + 1)
    return Edit(Span(place, place), ("" if not ours.selectors else ", ") + ", ".join(codes))


def _added(source: Source, row: int, codes: list[str]) -> Edit:
    line = source.line(row)
    span = Span(Location(row, len(line.rstrip()) + 1), Location(row, len(line) + 1))
    return Edit(span, f"  # amplint: ignore[{', '.join(codes)}]")
