"""Between amplint's places, in rows and characters from 1, and the client's, in lines and code units from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from amplint import contents
from amplint.server.buffers import Buffer, lines_of
from amplint.source import Location, Source, SourceError, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_CODECS = {
    types.PositionEncodingKind.Utf8: ("utf-8", 1),
    types.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    types.PositionEncodingKind.Utf32: ("utf-32-le", 4),
}
"""For each encoding the codec, and how many of its bytes are one code unit."""


class Positions:
    """The places of one text for a client that counts in ``encoding``."""

    def __init__(self, lines: Sequence[str], encoding: types.PositionEncodingKind) -> None:
        self._lines = lines
        self._codec, self._width = _CODECS[encoding]

    def position(self, location: Location) -> types.Position:
        """The client's position of a location."""
        return types.Position(location.row - 1, self._units(self._line(location.row)[: location.column - 1]))

    def range(self, span: Span) -> types.Range:
        """The client's range of a span."""
        return types.Range(self.position(span.start), self.position(span.end))

    def location(self, position: types.Position) -> Location:
        """The location of a client's position: the character that it is before or, between halves, in."""
        row, units = position.line + 1, 0
        line = self._line(row)
        for index, character in enumerate(line):
            units += self._units(character)
            if units > position.character:
                return Location(row, index + 1)
        return Location(row, len(line) + 1)

    def span(self, range_: types.Range) -> Span:
        """The span of a client's range."""
        return Span(self.location(range_.start), self.location(range_.end))

    def rows(self, first: int, last: int) -> types.Range:
        """The range of whole lines, from the ``first`` to before the ``last``, counted from 0."""
        return types.Range(self._line_start(first), self._line_start(last))

    def _line_start(self, index: int) -> types.Position:
        """Where a line begins; behind a last line without an ending there is none, but the end of that line."""
        if index and index == len(self._lines) and not self._lines[-1].endswith(("\n", "\r")):
            return types.Position(index - 1, self._units(self._lines[-1]))
        return types.Position(index, 0)

    def _line(self, row: int) -> str:
        return self._lines[row - 1].rstrip("\r\n") if 0 < row <= len(self._lines) else ""

    def _units(self, text: str) -> int:
        return len(text.encode(self._codec, errors="surrogatepass")) // self._width


class Places:
    """Places in several files, each as the editor has it open, else as it stands on disk."""

    def __init__(self, buffers: Iterable[Buffer], encoding: types.PositionEncodingKind) -> None:
        self._buffers = {buffer.path: buffer for buffer in buffers}
        self._encoding = encoding
        self._positions: dict[Path, Positions] = {}

    def location(self, path: Path, span: Span) -> types.Location:
        """The client's location of a span of a file."""
        buffer = self._buffers.get(path)
        return types.Location(buffer.uri if buffer is not None else path.as_uri(), self.of(path).range(span))

    def of(self, path: Path) -> Positions:
        """The positions in a file."""
        if path not in self._positions:
            buffer = self._buffers.get(path)
            lines = buffer.lines if buffer is not None else _lines_on_disk(path)
            self._positions[path] = Positions(lines, self._encoding)
        return self._positions[path]


def _lines_on_disk(path: Path) -> list[str]:
    try:
        return lines_of(Source(path, contents.read(path)).text)
    except (OSError, SourceError):
        return []
