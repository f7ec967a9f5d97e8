"""Suspects for what breaks or loses only if a caller, a loaded model or compiled code does what is usual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.judge.certainty import ASSUMED
from amplint.rule import Suspect

if TYPE_CHECKING:
    import ast

    from amplint.finding import Cause
    from amplint.infer.facts import FileFacts


def likely_loss(
    facts: FileFacts,
    node: ast.expr | ast.stmt,
    message: str,
    scenarios: tuple[str, ...],
    causes: tuple[Cause, ...] = (),
    data: object = None,
) -> Suspect:
    """A likely warning that lies at ``node``, and is decided there too."""
    span = facts.span(node)
    return Suspect(span, span, message, scenarios, ASSUMED, causes, Severity.WARNING, data)
