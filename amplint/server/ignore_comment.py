"""The edit that silences one finding: ``# amplint: ignore[CODE]`` at the end of its first line."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.finding import Edit
from amplint.fix import apply_edits
from amplint.source import Location, SourceError, Span
from amplint.suppression.hiding import Suppressions

if TYPE_CHECKING:
    from amplint.finding import Finding
    from amplint.source import Source

_CODES = re.compile(r"#\s*amplint:\s*ignore\[[^\]]*(?=\])", re.IGNORECASE)
"""A comment that silences codes, up to where another one is added."""


def ignoring(finding: Finding, source: Source) -> Edit | None:
    """The edit; None where a comment there would be no comment, as within a string or before a line's continuation."""
    try:
        edit = _edit(finding, source)
        return edit if _silences(finding, source, edit) else None
    except (SourceError, SyntaxError, ValueError, RecursionError):
        return None


def _edit(finding: Finding, source: Source) -> Edit:
    row = finding.span.start.row
    line = source.line(row)
    known = _CODES.search(line)
    if known is not None:
        at, text = Location(row, known.end() + 1), f", {finding.code}"
    else:
        at, text = Location(row, len(line.rstrip()) + 1), f"  # amplint: ignore[{finding.code}]"
    return Edit(Span(at, at), text)


def _silences(finding: Finding, source: Source, edit: Edit) -> bool:
    """Whether the edit changes nothing but that the finding is silenced. Raises what parsing does."""
    edited = apply_edits(source, [edit])
    same = ast.dump(ast.parse(edited.text)) == ast.dump(ast.parse(source.text))
    return same and Suppressions(edited).hides(finding)
