"""Tensors that got their dtype where they were made: what made them, and what happened to them since."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.values import Made

from ._alignment import disagreement

if TYPE_CHECKING:
    import libcst as cst

    from amplint.infer.facts import Conflict, FileFacts, MadeOperand
    from amplint.infer.values import Origin
    from amplint.visit import Visit

_LONGEST_QUOTE = 60


_KEPT = {
    "attribute": ", and a plain attribute keeps it, which converting the module does not reach",
    "buffer": ", and a buffer keeps it",
}


def reason(made: MadeOperand) -> str:
    """Why a tensor has the dtype that it has: ``torch.eye() without dtype makes float32``."""
    return f"{_making(made.maker)}{_KEPT[made.kept] if made.kept is not None else ''}"


def _making(maker: Origin) -> str:
    text = quoted(maker.node) or "what it is computed from"
    if maker.made is Made.CONVERTED:
        return f"{text} makes floats of integers in a fixed dtype"
    if maker.made is Made.WRITTEN:
        return f"{text} has its dtype written out"
    if maker.what.startswith("torch.") and maker.what.endswith("without dtype"):
        return f"{maker.what.split('(', 1)[0]}() without dtype makes float32"
    return f"{text} takes torch's default dtype"


def message(facts: FileFacts, conflict: Conflict, made: MadeOperand) -> str:
    """Which operands differ, and why the one that was made has its dtype."""
    return f"{disagreement(facts, conflict)}: {reason(made)}"


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
