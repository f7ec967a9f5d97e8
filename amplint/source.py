"""A Python source file: text, syntax tree and positions.

Rows and columns count from 1 and columns count characters, as in :doc:`the contract </contract>`. ``ast`` counts
columns from 0 in UTF-8 bytes; :meth:`Source.span` converts.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, order=True, slots=True)
class Location:
    """A place in a file: row and column from 1, the column in characters."""

    row: int
    column: int


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A stretch of source; ``end`` is exclusive."""

    start: Location
    end: Location

    @property
    def last_row(self) -> int:
        """The row of its last character."""
        return self.end.row - (self.end.column == 1 and self.end.row > self.start.row)

    def contains(self, other: Span) -> bool:
        return self.start <= other.start and other.end <= self.end


_START = Location(1, 1)


class SourceError(Exception):
    """The bytes are not Python source: undecodable, or not parsable.

    ``location`` is where the parser stopped (row 1, column 1 if it did not say).
    """

    def __init__(self, message: str, location: Location = _START) -> None:
        super().__init__(message)
        self.message = message
        self.location = location


MAX_TREE_BYTES = 2_000_000
"""Source of the syntax trees kept, since a file is read again when another imports it; trees take fifty times that."""


class _Trees:
    """The syntax trees of files parsed lately."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[bytes, ast.Module]] = {}
        self._size = 0

    def find(self, path: Path, data: bytes) -> ast.Module | None:
        known = self._kept.get(path)
        if known is None or known[0] != data:
            return None
        self._kept[path] = self._kept.pop(path)
        return known[1]

    def keep(self, path: Path, data: bytes, tree: ast.Module) -> None:
        self._size += len(data) - len(self._kept.pop(path, (b"",))[0])
        self._kept[path] = (data, tree)
        while self._size > MAX_TREE_BYTES and len(self._kept) > 1:
            self._size -= len(self._kept.pop(next(iter(self._kept)))[0])


_TREES = _Trees()


def parse(text: str) -> ast.Module:
    """The syntax tree of a text without a byte order mark. Raises SourceError where there is none."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        rows = len(list(io.StringIO(text, newline="")))
        row = min(max(error.lineno or 1, 1), max(rows, 1))
        raise SourceError(error.msg, Location(row, max(error.offset or 1, 1))) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceError(str(error) or type(error).__name__) from error


class Source:
    """One file's text as it stands on disk, line endings included.

    ``path`` is the absolute path findings are reported under; it need not exist (standard input).
    """

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.data = data

    @cached_property
    def encoding(self) -> str:
        """The declared encoding (PEP 263), UTF-8 by default. Raises SourceError for an unknown one."""
        try:
            return tokenize.detect_encoding(io.BytesIO(self.data).readline)[0]
        except (SyntaxError, LookupError) as error:
            raise SourceError(f"unknown source encoding: {error}") from error

    @cached_property
    def text(self) -> str:
        """The decoded text with its own line endings. Raises SourceError where bytes do not decode."""
        try:
            return self.data.decode(self.encoding)
        except UnicodeDecodeError as error:
            row = self.data.count(b"\n", 0, error.start) + 1
            raise SourceError(f"not valid {self.encoding}: {error.reason}", Location(row, 1)) from error

    @cached_property
    def lines(self) -> list[str]:
        """Physical lines with their endings, as Python's tokenizer counts them."""
        return list(io.StringIO(self.text, newline=""))

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree, one for all sources of equal path and bytes. Raises SourceError where there is none."""
        tree = _TREES.find(self.path, self.data)
        if tree is None:
            tree = parse(self.text.removeprefix("\ufeff"))
            _TREES.keep(self.path, self.data, tree)
        return tree

    def line(self, row: int) -> str:
        """The text of a row (from 1) without its line ending; empty past the end."""
        return self.lines[row - 1].rstrip("\r\n") if 0 < row <= len(self.lines) else ""

    def _location(self, row: int, byte_column: int) -> Location:
        line = self.lines[row - 1] if row <= len(self.lines) else ""
        if row == 1:
            line = line.removeprefix("\ufeff")
        if line.isascii():
            return Location(row, byte_column + 1)
        return Location(row, len(line.encode()[:byte_column].decode(errors="ignore")) + 1)

    def or_empty(self) -> Source:
        """The source, or an empty one of its path where its bytes cannot be decoded, for what reads its lines."""
        with suppress(SourceError):
            if self.lines:
                return self
        return Source(self.path, b"")

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias) -> Span:
        """The source span of a syntax node."""
        start = self._location(node.lineno, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return Span(start, start)
        return Span(start, self._location(node.end_lineno, node.end_col_offset))

    def header_span(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Span:
        """From the ``def`` or ``class`` keyword to the end of the name: where a finding about the whole lies."""
        start = self._location(node.lineno, node.col_offset)
        found = _HEADER.match(self.line(node.lineno), start.column - 1)
        return Span(start, Location(node.lineno, found.end() + 1) if found else start)

    def offset(self, location: Location) -> int:
        """The index into :attr:`text` of a location."""
        return self._line_offsets[location.row - 1] + location.column - 1

    def location(self, offset: int) -> Location:
        """The location of an index into :attr:`text`."""
        row = bisect_right(self._line_offsets, offset)
        return Location(row, offset - self._line_offsets[row - 1] + 1)

    @cached_property
    def _line_offsets(self) -> list[int]:
        offsets, total = [], 0
        for line in self.lines:
            offsets.append(total)
            total += len(line)
        offsets.append(total)
        return offsets

    def segment(self, span: Span) -> str:
        """The text that a span covers."""
        return self.text[self.offset(span.start) : self.offset(span.end)]


_HEADER = re.compile(r"(?:async\s+def|def|class)\s+\w+")
