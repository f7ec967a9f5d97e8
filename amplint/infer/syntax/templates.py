"""Strings with parts that are not known, as they name families of attributes: ``f"stage_{i}"`` is ``stage_*``."""

from __future__ import annotations

import ast
import re
import string
from functools import lru_cache

ANY, DIGITS = "*", "#"
"""What stands in a template for a part of which nothing is known, and for a whole number."""
MAX_TEMPLATE = 100
"""Characters of templates that are compared: an attribute has a name."""
_SPECIFIER = re.compile(r"%(\(\w*\))?[-+ #0]*[\d*]*(\.[\d*]+)?(?P<kind>[a-zA-Z%])")


def template_of(node: ast.expr) -> str | None:
    """The text of a string with ``*`` for what is put into it; None for what is no string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else ANY for part in node.values]
        return "".join(str(part) for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)):
        left = template_of(node.left)
        if left is None or isinstance(node.op, ast.Mod):
            return left and interpolated(left).replace(DIGITS, ANY)
        right = template_of(node.right)
        return left + (ANY if right is None else right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        text = template_of(node.func.value)
        return formatted(text) if text is not None else None
    return None


def interpolated(text: str) -> str:
    """``text % …``, whatever is put into it."""

    def part(found: re.Match[str]) -> str:
        kind = found["kind"]
        return "%" if kind == "%" else DIGITS if kind in "di" else ANY

    return _SPECIFIER.sub(part, text)


def formatted(text: str) -> str | None:
    """``text.format(…)``, whatever is put into it; None for a text that Python does not take."""
    try:
        parts = [*string.Formatter().parse(text)]
    except ValueError:
        return None
    return "".join(written + (ANY if field is not None else "") for written, field, _, _ in parts)


def is_family(name: str) -> bool:
    """Whether a name stands for all that have its form."""
    return ANY in name or DIGITS in name


def names_family(template: str) -> bool:
    """Whether a template says enough to tell its family from others."""
    return len(template) <= MAX_TEMPLATE and any(character.isalpha() for character in template)


@lru_cache(maxsize=4096)
def meet(a: str, b: str) -> bool:
    """Whether two names or templates may stand for the same name."""
    if not is_family(a) and not is_family(b):
        return a == b
    if len(a) > MAX_TEMPLATE or len(b) > MAX_TEMPLATE:
        return False
    row = {(0, 0)}
    pending = [*row]
    while pending:
        i, j = pending.pop()
        if (i, j) == (len(a), len(b)):
            return True
        further = _steps(a[i : i + 1], b[j : j + 1], i, j) - row
        row |= further
        pending += further
    return False


def _steps(x: str, y: str, i: int, j: int) -> set[tuple[int, int]]:
    """Where two templates may go on, in each of which one character or the end was reached."""
    found: set[tuple[int, int]] = set()
    if x == ANY:
        found |= {(i + 1, j), (i, j + 1)} if y else {(i + 1, j)}
    if y == ANY:
        found |= {(i, j + 1), (i + 1, j)} if x else {(i, j + 1)}
    if DIGITS in (x, y) and x and y and all(character == DIGITS or character.isdigit() for character in (x, y)):
        found |= {(i + 1, j + 1)} | ({(i, j + 1)} if x == DIGITS else set()) | ({(i + 1, j)} if y == DIGITS else set())
    if x and x == y:
        found.add((i + 1, j + 1))
    return found
