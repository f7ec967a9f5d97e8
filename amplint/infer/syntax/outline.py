"""The names that a module binds, found without parsing all of it.

A file is imported for a few of its names, and parsing is what reading it costs: so its top-level statements are told
apart by their first lines, and each is parsed when its name is asked for. What first lines do not tell (imports,
compound statements, unpacking) is parsed at once.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Unparsed(NamedTuple):
    """A top-level statement of a text: its row (from 1), and where it starts and ends."""

    row: int
    start: int
    end: int

    def parse(self, text: str) -> ast.stmt:
        """Its syntax tree, with its rows in the file. Raises SyntaxError where it is not a statement of its own."""
        body = ast.parse("\n" * (self.row - 1) + text[self.start : self.end]).body
        if not body:
            raise SyntaxError("no statement")
        return body[0]


class Outline(NamedTuple):
    """The statements that bind one name by their first line, and a tree of those that were parsed."""

    named: list[tuple[str, Unparsed]]
    parsed: ast.Module


_QUOTED = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
_START = re.compile(r"^[A-Za-z_@(\[*]", re.MULTILINE)
_FIRST_LINE = re.compile(
    r"(?P<continued>(?:else|elif|except|finally)\b)"
    r"|(?P<decorator>@)"
    r"|(?:async +def|def|class) +(?P<defined>\w+)"
    r"|(?P<compound>(?:if|try|with|for|while|match|async|import|from)\b)"
    r"|(?P<assigned>[A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?=(?![=\n])(?![ \t]*[\w.]+[ \t]*=[^=])"
    r"|(?P<nothing>[A-Za-z_]\w*[ \t]*(?:[.(\[]|[-+*/|&^%@<>]+=)|(?:assert|del|raise|pass|global)\b)"
)


def outline(text: str) -> Outline | None:
    """What a module's first lines say; None where they cannot be told apart.

    Raises SyntaxError, and what else ``ast.parse`` raises, where one that is parsed does not parse.
    """
    if text.count("\r") != text.count("\r\n"):
        return None
    named: list[tuple[str, Unparsed]] = []
    at_once: list[Unparsed] = []
    statements = [*_statements(text)]
    for number, (kind, name, row, start) in enumerate(statements):
        end = statements[number + 1][3] if number + 1 < len(statements) else len(text)
        if kind == "named":
            named.append((name, Unparsed(row, start, end)))
        elif kind == "parsed":
            at_once.append(Unparsed(row, start, end))
    pieces: list[str] = []
    row = 1
    for statement in at_once:
        piece = text[statement.start : statement.end]
        pieces += ["\n" * (statement.row - row), piece]
        row = statement.row + piece.count("\n")
    return Outline(named, ast.parse("".join(pieces)))


def _statements(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Kind (named, parsed, nothing), name, row and start of each top-level statement."""
    quoted = [found.span() for found in _QUOTED.finditer(text) if text.startswith(('"""', "'''"), found.start())]
    quoted.append((len(text), len(text)))
    inside = 0
    row, counted = 1, 0
    decorated: tuple[int, int] | None = None
    for found in _START.finditer(text):
        start = found.start()
        while quoted[inside][1] <= start < len(text):
            inside += 1
        if quoted[inside][0] < start:
            continue
        first = _FIRST_LINE.match(text, start)
        kind = first.lastgroup if first is not None else ""
        if kind == "continued":
            continue
        row += text.count("\n", counted, start)
        counted = start
        place = decorated or (row, start)
        if kind == "decorator":
            decorated = place
        elif first is not None and kind in ("defined", "assigned"):
            decorated = None
            several = kind == "assigned" and ";" in text[start : text.find("\n", start)]
            yield ("parsed", "", *place) if several else ("named", first[kind], *place)
        else:
            decorated = None
            yield ("nothing" if kind == "nothing" else "parsed"), "", *place
