"""A place that a finding may be made of, and how the plainest ones are made."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from amplint.finding import Severity
from amplint.frozen import dataclass
from amplint.judge.certainty import ASSUMED

if TYPE_CHECKING:
    import ast

    from amplint.finding import Cause, Doubt, Place
    from amplint.infer.state.facts import FileFacts
    from amplint.judge.certainty import Standing
    from amplint.source import Span


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place that the facts make suspicious: what the finding would say, short of its fix.

    ``span`` is where the finding lies; ``node`` is the span of the syntax node whose libcst visit decides, usually the
    same. ``standing`` says whether the facts force it, and what speaks against it. ``data`` is the rule's own.
    ``culprit`` is what does not belong, of which several suspects make one finding, and ``also`` where it fails too.
    """

    span: Span
    node: Span
    message: str
    scenarios: tuple[str, ...]
    standing: Standing
    causes: tuple[Cause, ...] = ()
    severity: Severity | None = None
    data: Any = field(default=None, compare=False)
    of_weights: bool = True
    """As of its rule: False where this claim rests on something else than half weights, which the source shows."""
    culprit: Place | None = None
    also: tuple[Place, ...] = ()

    def doubted(self, *doubts: Doubt, span: Span | None = None) -> Suspect:
        """The same, with further doubts, which are seen at ``span``."""
        return replace(self, standing=self.standing.doubted(*doubts, span=span)) if doubts else self


def likely_loss(
    facts: FileFacts,
    node: ast.expr | ast.stmt,
    message: str,
    scenarios: tuple[str, ...],
    causes: tuple[Cause, ...] = (),
    data: object = None,
) -> Suspect:
    """A likely warning that lies at ``node``, and is decided there too.

    For what breaks or loses only if a caller, a loaded model or compiled code does what is usual.
    """
    span = facts.span(node)
    return Suspect(span, span, message, scenarios, ASSUMED, causes, Severity.WARNING, data)
