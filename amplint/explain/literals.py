"""The longest literal part of a regular expression."""

from __future__ import annotations

_OPTIONAL = "?*{"
_PLAIN_ESCAPES = frozenset(r".^$*+?{}[]\|()'\"`/-")


def longest_literal(pattern: str) -> str:
    """The longest run of plain characters that every match of a pattern must contain; empty where none is certain.

    Only what stands outside groups and character classes counts. ``{role}`` ends a run, as any group does.
    """
    best = run = ""
    position = depth = 0
    while position < len(pattern):
        character = pattern[position]
        literal, width = "", 1
        if character == "\\":
            literal, width = (pattern[position + 1] if pattern[position + 1] in _PLAIN_ESCAPES else ""), 2
        elif character == "[":
            width = _class_length(pattern, position)
        elif character == "{":
            width = pattern.index("}", position) - position + 1
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            return ""
        elif character not in ".^$*+?|":
            literal = character
        following = pattern[position + width : position + width + 1]
        optional = following != "" and following in _OPTIONAL and not _is_role(pattern, position + width)
        if depth or not literal or optional:
            best, run = max(best, run, key=len), ""
        else:
            run += literal
        position += width
    return max(best, run, key=len)


def _class_length(pattern: str, start: int) -> int:
    position = start + 1
    if pattern[position] == "^":
        position += 1
    position += 1
    while pattern[position] != "]":
        position += 2 if pattern[position] == "\\" else 1
    return position + 1 - start


def _is_role(pattern: str, position: int) -> bool:
    """Whether a brace opens a role rather than a repetition."""
    return pattern[position] == "{" and pattern[position + 1].isalpha()
