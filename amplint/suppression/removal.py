"""Taking codes out of a suppression comment, or the comment where nothing is left of it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.source import Location, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.source import Source
    from amplint.suppression.directives import Directive, Selector


def without(source: Source, directive: Directive, selectors: Sequence[Selector]) -> Edit:
    """The edit that takes these codes out of a comment; all of its codes, or none, stand for the whole of it."""
    codes = directive.selectors
    kept = [code for code in codes if code not in selectors]
    if not kept:
        return _whole(source, directive)
    line, borders = source.line(directive.row), dict(pairwise(codes))
    parted = {after: line[before.end : after.start] for before, after in borders.items()}
    text = "".join((parted[code] if code is not kept[0] else "") + code.text for code in kept)
    return _edit(directive.row, codes[0].start, codes[-1].end, text)


def _whole(source: Source, directive: Directive) -> Edit:
    """The edit that removes a comment: its line where it stands alone, but not what else the comment says."""
    line = source.line(directive.row)
    before, behind = line[: directive.start], line[directive.end :]
    reason = re.sub(r"^[\s:;,.\-\u2013\u2014]+", "", behind)
    if reason:
        start = directive.start if reason.startswith("#") else directive.start + 1
        blank = "" if reason.startswith("#") else " "
        return _edit(directive.row, start, len(line) - len(reason), blank)
    kept = before.rstrip().rstrip("#").rstrip()
    if kept:
        return _edit(directive.row, len(kept), len(line))
    return Edit(Span(Location(directive.row, 1), Location(directive.row + 1, 1)), "")


def _edit(row: int, start: int, end: int, content: str = "") -> Edit:
    return Edit(Span(Location(row, start + 1), Location(row, end + 1)), content)
