"""A file's lines as HTML, with an element around every expression that may be a tensor."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.annotate.rows import Row
    from amplint.source import Source, Span


@dataclass(frozen=True, slots=True)
class Element:
    """One expression on the page: its row, and the index of the element around it, -1 where there is none."""

    row: Row
    parent: int


def elements_of(rows: Sequence[Row]) -> list[Element]:
    """The rows as a forest, outer ones before what they hold; one that only overlaps another has no place in it."""
    found: list[Element] = []
    around: list[int] = []
    for row in sorted(rows, key=lambda row: (row.span.start, _backwards(row.span))):
        while around and found[around[-1]].row.span.end <= row.span.start:
            around.pop()
        if around and not found[around[-1]].row.span.contains(row.span):
            continue
        found.append(Element(row, around[-1] if around else -1))
        around.append(len(found) - 1)
    return found


def _backwards(span: Span) -> tuple[int, int]:
    return -span.end.row, -span.end.column


def lines(source: Source, elements: Sequence[Element], tags: Sequence[str]) -> list[str]:
    """Each line as HTML; ``tags`` are the elements' opening tags. What goes over several lines has a part in each."""
    texts = source_lines(source)
    inserted: list[list[tuple[int, int, str]]] = [[] for _ in texts]
    for index, (element, tag) in enumerate(zip(elements, tags, strict=True)):
        span = element.row.span
        for row in range(span.start.row, min(span.end.row, len(texts)) + 1):
            text = texts[row - 1]
            first = span.start.column - 1 if row == span.start.row else len(text) - len(text.lstrip())
            last = span.end.column - 1 if row == span.end.row else len(text)
            if first < last:
                inserted[row - 1] += [(first, index, tag), (last, -1 - index, "</span>")]
    return [_with_tags(text, sorted(tags)) for text, tags in zip(texts, inserted, strict=True)]


def _with_tags(text: str, tags: list[tuple[int, int, str]]) -> str:
    out, position = [], 0
    for column, _, tag in tags:
        out += [escape(text[position:column]), tag]
        position = max(position, column)
    return "".join(out) + escape(text[position:])


def source_lines(source: Source) -> list[str]:
    """The lines without their endings and without a byte order mark."""
    return [source.line(row + 1).removeprefix("\ufeff" if row == 0 else "") for row in range(len(source.lines))]


def escape(text: str) -> str:
    """Text as HTML, characters that a page may not hold as ``?``."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\t" else "?" for c in text)
    return html.escape(text)
