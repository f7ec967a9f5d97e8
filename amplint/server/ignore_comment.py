"""The edit that silences one finding by a comment."""

from __future__ import annotations

import ast
import tokenize
from typing import TYPE_CHECKING

from amplint.fix import apply_edits
from amplint.source import SourceError
from amplint.suppression.adding import ignoring
from amplint.suppression.hiding import Suppressions

if TYPE_CHECKING:
    from amplint.finding import Edit, Finding
    from amplint.source import Source


def ignoring_one(finding: Finding, source: Source) -> Edit | None:
    """The edit; None where it would change more than that the finding is silenced."""
    try:
        (edit,) = ignoring(source, [finding])
        return edit if _silences(finding, source, edit) else None
    except (SourceError, SyntaxError, tokenize.TokenError, ValueError, RecursionError, StopIteration):
        return None


def _silences(finding: Finding, source: Source, edit: Edit) -> bool:
    """Whether the edit changes nothing but that the finding is silenced. Raises what parsing does."""
    edited = apply_edits(source, [edit])
    same = ast.dump(ast.parse(edited.text)) == ast.dump(ast.parse(source.text))
    return same and Suppressions(edited).hides(finding)
