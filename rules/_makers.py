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

_LONGEST_QUOTE = 40


def reason(made: MadeOperand) -> str:
    """Why a tensor has the dtype that it has: ``torch.eye() without dtype makes float32``."""
    maker = made.maker
    if maker.made is Made.CONVERTED:
        return f"`{_short(maker.node)}` makes floats of integers in a fixed dtype"
    if maker.made is Made.WRITTEN:
        return f"`{_short(maker.node)}` has its dtype written out"
    if maker.what.startswith("torch.") and maker.what.endswith("without dtype"):
        return f"{maker.what.split('(', 1)[0]}() without dtype makes float32"
    return f"`{_short(maker.node)}` takes torch's default dtype"


_KEPT = {
    "attribute": ", and a plain attribute keeps it, which converting the module does not reach",
    "buffer": ", and a buffer keeps it",
}


def message(facts: FileFacts, conflict: Conflict, made: MadeOperand) -> str:
    """Which operands differ, and why the one that was made has its dtype."""
    kept = _KEPT[made.kept] if made.kept is not None else ""
    return f"{disagreement(facts, conflict)}: {reason(made)}{kept}"


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST_QUOTE else "…" + text[1 - _LONGEST_QUOTE :]


def function_around(facts: FileFacts, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function whose body holds a node of this file."""
    found = None
    for function in ast.walk(facts.source.tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            inner is node for statement in function.body for inner in ast.walk(statement)
        ):
            found = function
    return found


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
