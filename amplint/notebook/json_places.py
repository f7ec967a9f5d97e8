"""JSON values with their places in the text, so that a few can be replaced and all else stays as it is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from typing import Any, TypeAlias

from amplint.frozen import dataclass

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = JSONDecoder()


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value, and the offsets at which its text starts and ends."""

    value: Any
    start: int
    end: int


Read: TypeAlias = Callable[[str, int], Value]
"""Reads the value at an offset. Raises JSONDecodeError."""


def read_any(text: str, at: int) -> Value:
    """The value at an offset, decoded whole. Raises JSONDecodeError."""
    value, end = _DECODER.raw_decode(text, at)
    return Value(value, at, end)


def read_object(text: str, at: int, readers: dict[str, Read] | None = None) -> Value:
    """The object at an offset, as a dictionary of places; some members may be read by ``readers`` of their own.

    Raises JSONDecodeError, also where there is another value.
    """
    members: dict[str, Value] = {}
    position = _after(text, at, "{")
    while not text.startswith("}", position):
        if members:
            position = _after(text, position, ",")
        key = read_any(text, position)
        if not isinstance(key.value, str):
            raise JSONDecodeError("Expecting property name enclosed in double quotes", text, position)
        position = _after(text, _blanks(text, key.end), ":")
        value = (readers or {}).get(key.value, read_any)(text, position)
        members[key.value] = value
        position = _blanks(text, value.end)
    return Value(members, at, position + 1)


def read_array(text: str, at: int, reader: Read = read_any) -> Value:
    """The array at an offset, as a list of places. Raises JSONDecodeError, also where there is another value."""
    elements: list[Value] = []
    position = _after(text, at, "[")
    while not text.startswith("]", position):
        if elements:
            position = _after(text, position, ",")
        element = reader(text, position)
        elements.append(element)
        position = _blanks(text, element.end)
    return Value(elements, at, position + 1)


def read_document(text: str, reader: Read) -> Value:
    """The one value of a text. Raises JSONDecodeError."""
    value = reader(text, _blanks(text, 0))
    end = _blanks(text, value.end)
    if end != len(text):
        raise JSONDecodeError("Extra data", text, end)
    return value


def _blanks(text: str, at: int) -> int:
    """Where the white space at an offset ends."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _after(text: str, at: int, mark: str) -> int:
    """Where what follows a mark begins."""
    if not text.startswith(mark, at):
        raise JSONDecodeError(f"Expecting '{mark}'", text, at)
    return _blanks(text, at + 1)
