"""JSON with places. ``json`` itself checks the text; the walk over it here only finds out where each value starts."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from amplint.preflight.document import DocumentError, Mapping, Node

_SPACE = re.compile(r"[ \t\n\r]*")


def read_json(text: str) -> Node:
    """The tree of a JSON document. Raises DocumentError."""
    text = text.removeprefix("\ufeff")
    try:
        json.loads(text)
    except ValueError as error:
        raise DocumentError(f"not valid JSON: {error}") from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    return _Reader(text).value(0)[0]


class _Reader:
    """Positions in a text that is known to be valid JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder()
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]

    def value(self, position: int) -> tuple[Node, int]:
        """The value that starts at or after a position, and where it ends."""
        start = self._skip(position)
        character = self._text[start]
        if character == "{":
            return self._mapping(start)
        if character == "[":
            return self._list(start)
        scalar, end = self._decoder.raw_decode(self._text, start)
        return self._node(scalar, start), end

    def _mapping(self, start: int) -> tuple[Node, int]:
        items = []
        position = self._skip(start + 1)
        while self._text[position] != "}":
            key, end = self.value(position)
            value, end = self.value(self._skip(end) + 1)
            items.append((str(key.value), key, value))
            position = self._after_comma(end)
        return self._node(Mapping(tuple(items)), start), position + 1

    def _list(self, start: int) -> tuple[Node, int]:
        items = []
        position = self._skip(start + 1)
        while self._text[position] != "]":
            item, end = self.value(position)
            items.append(item)
            position = self._after_comma(end)
        return self._node(tuple(items), start), position + 1

    def _after_comma(self, position: int) -> int:
        position = self._skip(position)
        return self._skip(position + 1) if self._text[position] == "," else position

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        assert match is not None
        return match.end()

    def _node(self, value: object, start: int) -> Node:
        row = bisect_right(self._starts, start)
        return Node(value, row, start - self._starts[row - 1] + 1)
