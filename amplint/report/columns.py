"""Text in a terminal: how wide it is, where it breaks, and what of it can be printed at all."""

from __future__ import annotations

import unicodedata

TAB = 4
CUT = "…"
"""Stands for what was cut off."""


def printable(text: str) -> str:
    """Text in which control characters, line breaks among them, are written as Python escapes them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(line: str) -> str:
    """A line of source as printed: tabs as spaces, control characters harmless."""
    line = line.rstrip("\r\n")
    if line.isascii() and line.isprintable():
        return line
    out, column = [], 0
    for character in line:
        text = " " * (TAB - column % TAB) if character == "\t" else character if character.isprintable() else "?"
        if unicodedata.category(character) in ("Mn", "Me"):
            text = character
        out.append(text)
        column += width(character, column)
    return "".join(out)


def columns(text: str) -> int:
    """How many terminal columns text takes at the start of a line."""
    if text.isascii() and "\t" not in text:
        return len(text)
    column = 0
    for character in text:
        column += width(character, column)
    return column


def width(character: str, column: int) -> int:
    """How many terminal columns a character takes that stands in ``column``, from 0."""
    if character == "\t":
        return TAB - column % TAB
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clipped(text: str, left: int, room: int | None) -> str:
    """What of a shown line lies in ``room`` columns from ``left`` on, all of it where that is None; ``…`` where
    something is cut off."""
    if room is None:
        return text
    end = left + room
    cut = columns(text) > end
    out, column = [CUT] if left else [], 0
    for character in text:
        before, column = column, column + width(character, column)
        if before >= left + (left > 0) and column <= end - cut:
            out.append(character)
    return "".join(out) + (CUT if cut else "")


def fold(text: str, room: int | None, first: int | None = None) -> list[str]:
    """Text broken at spaces into lines of at most ``room`` columns, the first of ``first``; a word is never broken.

    No room given is room for all of it.
    """
    if room is None:
        return [text]
    lines, left = [""], room if first is None else first
    for word in text.split(" "):
        taken = columns(word) + bool(lines[-1])
        if taken > left and (lines[-1] or left < room):
            lines.append(word)
            left = room - columns(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
            left -= taken
    return lines
