"""The comments of a file that silence findings, or were meant to, and the lines that each acts on.

``# amplint: ignore[AMP101] why`` and ``# noqa: AMP101`` act at the end of a line on findings that start or end there,
and, on the first or last line of a statement or of a block's head, on all that start in it: formatters move comments
there. ``ignore`` on a line of its own acts on the statement, head or line below it. ``# amplint: ignore-file[AMP101]``
above the first statement acts on the whole file.
"""

from __future__ import annotations

import re
import sys
import tokenize
from dataclasses import replace
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match

    from amplint.finding import Finding
    from amplint.source import Source

Rows = tuple[int, int]
"""The first and last of some rows."""

NO_ROWS: Rows = (0, 0)
EVERY_ROW: Rows = (1, sys.maxsize)


class Form(Enum):
    """What a comment says; ``FOREIGN`` is no form of ours."""

    IGNORE = "ignore"
    IGNORE_FILE = "ignore-file"
    NOQA = "noqa"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Selector:
    """A code, prefix or name in a comment, and its columns in the row, from 0."""

    text: str
    start: int
    end: int

    def matches(self, finding: Finding) -> bool:
        return finding.code.startswith(self.text.upper()) or finding.name == self.text.lower()


@dataclass(frozen=True, slots=True)
class Directive:
    """One comment, or the part of one, that silences findings, from column ``start`` to ``end`` of its row, from 0.

    ``blanket``: it names no codes and means all. It acts on findings that start in ``rows``, at the end of a line also
    on those that end in ``row``. ``meant`` is what a foreign one should be.
    """

    form: Form
    row: int
    start: int
    end: int
    selectors: tuple[Selector, ...] = ()
    blanket: bool = False
    alone: bool = False
    rows: Rows = NO_ROWS
    meant: str = ""

    def covers(self, finding: Finding) -> bool:
        """Whether the comment acts where a finding lies."""
        start, last = finding.span.start.row, finding.span.last_row
        at_end_of_line = self.form in OF_LINES and not self.alone
        return self.rows[0] <= start <= self.rows[1] or (at_end_of_line and self.row in (start, last))


OF_LINES = (Form.IGNORE, Form.NOQA)
"""What acts on single lines."""

_CODES = r"[A-Z]{2,}[0-9]{3}(?:[\s,]+[A-Z]{2,}[0-9]{3})*"
_OURS = re.compile(
    r"#\s*amplint(?P<sign>\s*[:=]\s*|-|\s+)(?P<word>[a-z][\w-]*)"
    rf"(?:\s*\[(?P<codes>[^\]]*)\]|\s*[\[(=:]?\s*(?P<loose>(?-i:{_CODES})|(?<==)[\w-]+(?:\s*,\s*[\w-]+)*)[\])]?)?",
    re.IGNORECASE,
)
_NOQA = re.compile(r"#\s*noqa\b(?P<colon>\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)?)?", re.IGNORECASE)
_SELECTOR = re.compile(r"[^\s,]+")

_WORDS = ("disable", "skip", "noqa", "nolint", "suppress", "silence")
"""How other tools say it, as in ``disable-next-line``."""
_SHORT = ("allow", "enable", "off", "ok", "on")
"""Words that say it too where nothing else follows."""


def directives(source: Source) -> list[Directive]:
    """What silences findings in a file, or was meant to, in order; none where it cannot be tokenized."""
    try:
        return sorted(_placed(source), key=lambda one: (one.row, one.start))
    except (tokenize.TokenError, SyntaxError):
        return []


def tokens(source: Source) -> Iterator[tokenize.TokenInfo]:
    """Tokens by the rows of :attr:`Source.lines`, whatever ends them."""
    lines = (line.rstrip("\r\n") + ("\n" if line[-1:] in "\r\n" else "") for line in source.lines)
    return tokenize.generate_tokens(lambda: next(lines, ""))


_LAYOUT = (tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.ENDMARKER, tokenize.ENCODING)


def _placed(source: Source) -> Iterator[Directive]:
    """Each comment's, once the logical line that it acts on is known.

    ``above`` are those on lines of their own, down to the line ``until``, which belong to the next logical line if that
    follows at once; ``within`` are those in the logical line that began in the row ``first``.
    """
    above: list[Directive] = []
    within: list[Directive] = []
    heading, decorated = True, False
    first = until = 0
    for token in tokens(source):
        row, column = token.start
        starts = token.type == tokenize.COMMENT or (not first and token.type not in (*_LAYOUT, tokenize.NEWLINE))
        if starts and not first and until != row - 1:
            yield from above
            above = []
        if token.type == tokenize.COMMENT:
            alone = not source.line(row)[:column].strip()
            found = list(_read(token.string, row, column, alone))
            if heading:
                found = [replace(one, rows=EVERY_ROW) if one.form is Form.IGNORE_FILE else one for one in found]
            (within if first else above).extend(found)
            until = row
        elif token.type == tokenize.NEWLINE:
            yield from (_in_line(one, (first, row), source) for one in within)
            above = [_over(one, (first, row)) for one in above]
            if not decorated:
                yield from above
                above = []
            within, first, until = [], 0, row
        elif token.type not in _LAYOUT:
            if not first:
                first, decorated = row, token.string == "@"
            heading = heading and token.type == tokenize.STRING
    yield from (*above, *within)


def _over(one: Directive, line: Rows) -> Directive:
    """A comment on a line of its own, with the logical line below it; ``noqa`` acts on its own line alone."""
    return replace(one, rows=(one.rows[0] or line[0], line[1])) if one.form is Form.IGNORE else one


def _in_line(one: Directive, line: Rows, source: Source) -> Directive:
    """A comment in a logical line, or at its end."""
    if one.form not in OF_LINES:
        return one
    if not one.alone:
        return replace(one, rows=line if one.row in line else (one.row, one.row))
    below = one.row + 1
    while source.line(below).lstrip().startswith("#"):
        below += 1
    return replace(one, rows=(below, below)) if one.form is Form.IGNORE else one


def _read(text: str, row: int, column: int, alone: bool) -> Iterator[Directive]:
    """What a comment says, still without the rows that it acts on."""
    for match in _OURS.finditer(text):
        start, end = column + match.start(), column + match.end()
        form, meant = _form(match, text)
        if form is Form.FOREIGN:
            yield Directive(form, row, start, end, meant=meant, alone=alone)
        elif form is not None:
            selectors = tuple(_selectors(match, column))
            yield Directive(form, row, start, end, selectors, match["codes"] is None, alone)
    noqa = _NOQA.search(text)
    if noqa is not None and (noqa["codes"] or not noqa["colon"]):
        start, end = column + noqa.start(), column + noqa.end()
        selectors = tuple(_selectors(noqa, column))
        yield Directive(Form.NOQA, row, start, end, selectors, not noqa["codes"], alone)


def _selectors(match: Match[str], column: int) -> Iterator[Selector]:
    if match["codes"]:
        start = column + match.start("codes")
        for code in _SELECTOR.finditer(match["codes"]):
            yield Selector(code[0], start + code.start(), start + code.end())


def _form(match: Match[str], text: str) -> tuple[Form | None, str]:
    """Which form a comment to amplint has, and for a foreign one what was meant; None for mere prose."""
    word, said = match["word"].lower(), match["codes"] or match["loose"] or ""
    ours = (Form.IGNORE.value, Form.IGNORE_FILE.value)
    signed = match["sign"].strip() == ":"
    if signed and match["loose"] is None and word in ours:
        return Form(word), ""
    parts = re.split(r"[-_]", word)
    known = parts[0] in _WORDS or get_close_matches(word, ours, n=1, cutoff=0.7)
    follows = not said and text[match.end() :].strip()
    if not (known or parts[0] in _SHORT) or (follows and not (known and signed)):
        return None, ""
    codes = ", ".join(code[0] for code in _SELECTOR.finditer(said))
    if "file" in word or "all" in parts:
        return Form.FOREIGN, f"amplint: ignore-file[{codes}]" if codes else "amplint: ignore-file"
    return Form.FOREIGN, f"amplint: ignore[{codes or 'CODE'}]"
