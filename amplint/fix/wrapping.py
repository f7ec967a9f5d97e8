"""Lines that fixes made longer than the project's formatter lets them be, wrapped as Black and ruff wrap them.

A call or subscript is split behind its bracket, its arguments on a line of their own or on one each; any other value
gets parentheses. What stands on several lines already, or has a comment, stays: its author formatted it by hand.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING

from amplint.fix.edits import apply_changes
from amplint.source import Location, Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amplint.fix.edits import Change

_Simple = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr


def wrapped(source: Source, made: Sequence[Change], fixed: Source, longest: int) -> list[Change]:
    """What wraps the lines of ``fixed`` that the changes ``made`` to ``source`` pushed beyond ``longest`` characters.

    Nothing where that would make another program.
    """
    changes = list(_wraps(source, made, fixed, longest))
    if not changes:
        return []
    try:
        same = ast.dump(apply_changes(fixed, changes).tree) == ast.dump(fixed.tree)
    except (SourceError, UnicodeEncodeError):
        return []
    return changes if same else []


def _wraps(source: Source, made: Sequence[Change], fixed: Source, longest: int) -> Iterator[Change]:
    newline = "\r\n" if "\r\n" in fixed.text else "\n"
    statements = {node.lineno: node for node in ast.walk(fixed.tree) if isinstance(node, _Simple)}
    for row in _pushed(source, made, fixed, longest):
        statement = statements.get(row)
        line = fixed.line(row)
        if statement is None or statement.end_lineno != row or "#" in line or ";" in line or line.endswith("\\"):
            continue
        yield from _wrap(fixed, statement, line, longest, newline)


def _pushed(source: Source, made: Iterable[Change], fixed: Source, longest: int) -> list[int]:
    """The rows of the new text that changes made too long."""
    rows, shift = set(), 0
    for start, end, content in made:
        before = source.location(start).row
        row = fixed.location(start + shift).row
        if "\n" not in content and len(source.line(before)) <= longest < len(fixed.line(row)):
            rows.add(row)
        shift += len(content) - (end - start)
    return sorted(rows)


def _wrap(fixed: Source, statement: _Simple, line: str, longest: int, newline: str) -> Iterator[Change]:
    """What breaks one statement: what replaces the blanks and commas between its parts."""
    value = statement.value
    if value is None:
        return
    indent = line[: len(line) - len(line.lstrip())]
    inner = indent + ("\t" if indent.startswith("\t") else "    ")
    opened = _opening(fixed, value)
    start, end = _columns(fixed, value)
    head, tail = "(", ")"
    arguments: list[tuple[int, int]] = []
    if opened is not None and opened < longest:
        arguments = _arguments(fixed, value, line)
        start, end, head, tail = opened + 1, end - 1, "", ""
    body = line[start:end].strip(" ")
    first = start + len(line[start:end]) - len(line[start:end].lstrip(" "))
    if len(inner) + len(body) <= longest:
        pieces = [(start, first, f"{head}{newline}{inner}"), (first + len(body), end, f"{newline}{indent}{tail}")]
    elif len(arguments) > 1 and all(len(inner) + last - begin < longest for begin, last in arguments):
        borders = [(start, arguments[0][0]), *_between(arguments), (arguments[-1][1], end)]
        if any(line[one:other].strip(", ") for one, other in borders):
            return
        texts = [f"{newline}{inner}", *[f",{newline}{inner}"] * (len(arguments) - 1), f",{newline}{indent}"]
        pieces = [(*border, text) for border, text in zip(borders, texts, strict=True)]
    else:
        return
    row = fixed.offset(Location(statement.lineno, 1))
    yield from ((row + one, row + other, text) for one, other, text in pieces)


def _columns(fixed: Source, node: ast.expr | ast.keyword) -> tuple[int, int]:
    """Where an expression of one line begins and ends, from 0."""
    span = fixed.span(node)
    return span.start.column - 1, span.end.column - 1


def _opening(fixed: Source, value: ast.expr) -> int | None:
    """The column, from 0, of the last bracket that a call or a subscript opens; None where nothing is in it."""
    if isinstance(value, ast.Call) and (value.args or value.keywords):
        return _columns(fixed, value.func)[1]
    return _columns(fixed, value.value)[1] if isinstance(value, ast.Subscript) else None


def _arguments(fixed: Source, value: ast.expr, line: str) -> list[tuple[int, int]]:
    """The columns of the arguments of a call that each may stand on a line with a comma behind it."""
    if not isinstance(value, ast.Call) or line[_columns(fixed, value.func)[1]] != "(":
        return []
    parts: list[ast.expr | ast.keyword] = [*value.args, *value.keywords]
    return sorted(_columns(fixed, part) for part in parts)


def _between(arguments: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(one[1], other[0]) for one, other in pairwise(arguments)]
