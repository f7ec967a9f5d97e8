"""The statements of a file that libcst parses, and where their nodes lie.

libcst takes ten times as long for a file as Python's own parser, and as much again to say where its nodes lie. So only
the statement at the top level that holds a place is parsed, once for all places in it. libcst counts its bytes; rows
and columns are made of them where somebody asks.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider

from amplint.source import Location, Span

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Mapping

    from libcst.metadata import CodeSpan

    from amplint.source import Source


class _Range(NamedTuple):
    """A stretch of a piece, in bytes."""

    start: int
    end: int


class _Bytes(ByteSpanPositionProvider):
    """Counts bytes without what a wrapper of metadata does besides: it walks the tree for other providers too."""

    def of(self, module: cst.Module) -> dict[cst.CSTNode, _Range]:
        self._gen_impl(module)
        spans = cast("Mapping[cst.CSTNode, CodeSpan]", self._computed)
        return {node: _Range(span.start, span.start + span.length) for node, span in spans.items()}


_PLACED_OTHERWISE = frozenset((cst.GeneratorExp, cst.Tuple, cst.Call, cst.FunctionDef, cst.ClassDef, cst.Decorator))
"""Kinds of node that lie elsewhere for ``ast``, or are looked for elsewhere too."""


class _Piece:
    """Rows of a file, parsed. Raises what libcst raises for what it refuses."""

    def __init__(self, source: Source, first: int, last: int) -> None:
        self._source, self._first = source, first
        lines = source.lines[first - 1 : last]
        if first == 1 and lines:
            lines[0] = lines[0].removeprefix("\ufeff")
        if lines and not lines[-1].endswith(("\n", "\r")):
            lines[-1] += "\n"
        self._lines = lines
        self._starts = [0, *accumulate(len(line.encode()) for line in lines)]
        self.module = cst.parse_module("".join(lines))
        self.ranges = _Bytes().of(self.module)
        """Where each node lies; a node follows those below it."""
        self._parents: dict[cst.CSTNode, cst.CSTNode] | None = None
        self._places: dict[_Range, list[cst.CSTNode]] = {}
        for node, place in self.ranges.items():
            self._places.setdefault(place, []).append(node)
            if node.__class__ in _PLACED_OTHERWISE:
                for other, named in self._placed_by_ast(node, place):
                    self._places.setdefault(other, []).append(named)

    def _placed_by_ast(self, node: cst.CSTNode, place: _Range) -> Iterator[tuple[_Range, cst.CSTNode]]:
        """Other places at which ``ast`` has a node, or amplint looks for it."""
        if isinstance(node, cst.GeneratorExp | cst.Tuple) and node.lpar:
            yield _Range(self.ranges[node.lpar[-1]].start, self.ranges[node.rpar[0]].end), node
        elif isinstance(node, cst.Call) and len(node.args) == 1 and isinstance(node.args[0].value, cst.GeneratorExp):
            # ast gives a generator that is the only argument the parentheses of the call.
            blanks = node.whitespace_after_func
            if not node.args[0].value.lpar and isinstance(blanks, cst.SimpleWhitespace):
                opening = self.outer(node.func).end + len(blanks.value)
                yield _Range(opening, place.end), node.args[0].value
        elif isinstance(node, cst.FunctionDef | cst.ClassDef):
            yield _Range(place.start, self.ranges[node.name].end), node
        elif isinstance(node, cst.Decorator):
            yield self.ranges[node.decorator], node

    def at(self, span: Span) -> list[cst.CSTNode]:
        return self._places.get(_Range(self._offset(span.start), self._offset(span.end)), [])

    def outer(self, node: cst.CSTNode) -> _Range:
        """Where a node lies, with the parentheses around it."""
        left, right = getattr(node, "lpar", None), getattr(node, "rpar", None)
        if not left or not right or isinstance(left, cst.MaybeSentinel | cst.LeftParen):
            return self.ranges[node]
        return _Range(self.ranges[left[0]].start, self.ranges[right[-1]].end)

    def span(self, place: _Range) -> Span:
        return Span(self._location(place.start), self._location(place.end))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        if self._parents is None:
            self._parents = {}
            pending: list[cst.CSTNode] = [self.module]
            while pending:
                current = pending.pop()
                below = current.children
                pending += below
                self._parents.update(dict.fromkeys(below, current))
        return self._parents.get(node)

    def _offset(self, location: Location) -> int:
        row = location.row - self._first
        line = self._lines[row] if row < len(self._lines) else ""
        return self._starts[min(row, len(self._lines))] + len(line[: location.column - 1].encode())

    def _location(self, offset: int) -> Location:
        row = bisect_right(self._starts, offset) - 1
        line = self._lines[row].encode() if row < len(self._lines) else b""
        column = len(line[: offset - self._starts[row]].decode(errors="ignore"))
        return Location(self._first + row, column + 1)


class Lossless:
    """A file as libcst has it, as far as it is asked for.

    Nodes are looked up by their spans, as ``ast`` has them. What libcst refuses is not there.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rows = _rows(source.tree.body)
        self._firsts = [first for first, _ in self._rows]
        self._pieces: dict[tuple[int, int], _Piece | None] = {}
        self._last: _Piece | None = None
        """The piece that was asked for last."""

    @property
    def module(self) -> cst.Module:
        """The whole file, with nodes of its own."""
        piece = self._piece(1, len(self._source.lines))
        if piece is None:
            raise ValueError(f"libcst refuses {self._source.path}")
        return piece.module

    def at(self, span: Span) -> list[cst.CSTNode]:
        """The nodes that lie at a place, the inner ones first."""
        index = bisect_right(self._firsts, span.start.row) - 1
        first, last = self._rows[index] if index >= 0 else (1, 0)
        if last < span.last_row:
            first, last = 1, len(self._source.lines)
        piece = self._piece(first, last)
        return piece.at(span) if piece is not None else []

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node lies, without the parentheses around it."""
        piece = self._piece_of(node)
        return piece.span(piece.ranges[node])

    def outer_span(self, node: cst.CSTNode) -> Span:
        """Where a node lies, with the parentheses around it."""
        piece = self._piece_of(node)
        return piece.span(piece.outer(node))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around this one; None for the module."""
        return self._piece_of(node).parent(node)

    def code_for(self, node: cst.CSTNode) -> str:
        """The text of a node that was made anew, laid out as the statement that was asked for last."""
        return (self._last.module if self._last is not None else self.module).code_for_node(node)

    def _piece(self, first: int, last: int) -> _Piece | None:
        rows = (first, last)
        if rows not in self._pieces:
            try:
                self._pieces[rows] = _Piece(self._source, first, last)
            except Exception:
                # libcst refuses some valid files, by several exception types; detection does not depend on it.
                self._pieces[rows] = None
        self._last = self._pieces[rows] or self._last
        return self._pieces[rows]

    def _piece_of(self, node: cst.CSTNode) -> _Piece:
        """Raises KeyError for a node that was made anew."""
        if self._last is None or node not in self._last.ranges:
            holding = (piece for piece in self._pieces.values() if piece is not None and node in piece.ranges)
            self._last = next(holding, self._last)
        if self._last is None:
            raise KeyError(node)
        return self._last


def _rows(body: list[ast.stmt]) -> list[tuple[int, int]]:
    """The first and the last row of each statement, with its decorators; of those that share rows together."""
    found: list[tuple[int, int]] = []
    for statement in body:
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        last = statement.end_lineno or statement.lineno
        if found and first <= found[-1][1]:
            first = found.pop()[0]
        found.append((first, last))
    return found
