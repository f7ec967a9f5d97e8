"""Tensors that got their dtype where they were made: what made them, and what happened to them since."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.infer.values import Made

from ._alignment import disagreement

if TYPE_CHECKING:
    import libcst as cst

    from amplint.finding import Cause
    from amplint.infer.facts import Conflict, FileFacts, MadeOperand
    from amplint.infer.values import Origin
    from amplint.visit import Visit

_LONGEST_QUOTE = 40
LONGEST = 120
"""Characters of a message in the common case; what does not fit is told by the causes."""
_KEPT = {
    "attribute": ", in a plain attribute, which .half() and .to() pass over",
    "buffer": ", in a buffer",
}


def because(text: str, reason: str) -> str:
    """A message with its reason, where the two are short enough to be read at a glance."""
    return f"{text}: {reason}" if len(text) + len(reason) + 2 <= LONGEST else text


def reason(made: MadeOperand) -> str:
    """Why a tensor has the dtype that it has: ``torch.eye() is float32 by default``."""
    maker = made.maker
    text = quoted(maker.node) or "what it is computed from"
    if maker.made in (Made.CONVERTED, Made.WRITTEN):
        return f"{text} is always float32"
    if maker.what.startswith("torch.") and maker.what.endswith("without dtype"):
        text = f"{maker.what.split('(', 1)[0]}()"
    return f"{text} is float32 by default"


def message(facts: FileFacts, conflict: Conflict, made: MadeOperand) -> str:
    """Which operands differ, and why the one that was made has its dtype."""
    return because(disagreement(facts, conflict), reason(made))


def causes(conflict: Conflict) -> tuple[Cause, ...]:
    """The causes of a conflict, that of the tensor that was made with what keeps it."""
    made = conflict.made
    if made is None or made.kept is None:
        return conflict.causes
    kept = _KEPT[made.kept]
    maker = (made.maker.source.path, made.maker.span)
    return tuple(
        replace(cause, message=cause.message + kept) if (cause.filename, cause.span) == maker else cause
        for cause in conflict.causes
    )


def quoted(node: ast.AST | None) -> str:
    """An expression in backticks; nothing for a long one."""
    text = ast.unparse(node) if node is not None else ""
    return f"`{text}`" if text and len(text) <= _LONGEST_QUOTE else ""


def find_call(visit: Visit, origin: Origin) -> cst.Call | None:
    """The libcst call of this file that an origin stands for."""
    import libcst as cst

    if origin.filename != str(visit.facts.path):
        return None
    pending: list[cst.CSTNode] = [visit.module]
    while pending:
        current = pending.pop()
        if isinstance(current, cst.Call) and visit.span(current) == origin.span:
            return current
        pending.extend(current.children)
    return None
