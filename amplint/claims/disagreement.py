"""Operands that disagree: from a conflict to a suspect, and to the words for it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.conflicts import conflicts
from amplint.claims.operands import layer_class, of_layer, short_name
from amplint.claims.suspect import Suspect
from amplint.finding import Place, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.conflict import Conflict
    from amplint.infer.state.facts import FileFacts, Kind
    from amplint.infer.state.operand import Operand

_LONGEST_QUOTE = 40


def suspects_of(facts: FileFacts, *kinds: Kind) -> Iterator[Suspect]:
    """A suspect for each conflict of these kinds, at the operation, with the conflict as its data."""
    for conflict in conflicts(facts):
        if conflict.kind in kinds:
            span = facts.span(conflict.node)
            yield Suspect(
                span=span,
                node=span,
                message=_message_of(conflict),
                scenarios=conflict.scenarios,
                standing=conflict.standing,
                causes=conflict.causes,
                severity=Severity.ERROR if conflict.raises and not conflict.cited else Severity.WARNING,
                data=conflict,
                of_weights=conflict.aligned is None,
                culprit=conflict.culprit,
                also=tuple(Place(facts.path, facts.span(node)) for node in conflict.also),
            )


def _message_of(conflict: Conflict) -> str:
    """``linear gets float32 input and bfloat16 weight``."""
    left, right = conflict.left, conflict.right
    if left.name == right.name:
        return f"{short_name(conflict.op)} gets {conflict.left_dtype} and {conflict.right_dtype} operands"
    return f"{short_name(conflict.op)} gets {conflict.left_dtype} {left.name} and {conflict.right_dtype} {right.name}"


def label(facts: FileFacts, conflict: Conflict) -> str:
    """What a reader calls the operation: ``nn.LSTM`` for a layer, else its short name."""
    parameter = next((operand for operand in conflict.operands if of_layer(conflict, operand)), None)
    layer = layer_class(facts, parameter) if parameter is not None else None
    if conflict.elsewhere is not None:
        return f"{short_name(conflict.op)} ({conflict.elsewhere.filename.name}:{conflict.elsewhere.span.start.row})"
    return layer.removeprefix("torch.") if layer is not None else short_name(conflict.op)


def describe(conflict: Conflict, operand: Operand, dtype: str) -> str:
    """``float32 `x```; for a layer's parameter, ``the float16 weight of `self.proj```."""
    text = ast.unparse(operand.node) if operand.node is not None else ""
    quoted = f"`{text}`" if text and len(text) <= _LONGEST_QUOTE else ""
    if of_layer(conflict, operand):
        return f"the {dtype} {operand.name} of {quoted or 'the layer'}"
    return f"{dtype} {quoted or operand.name}"


def disagreement(facts: FileFacts, conflict: Conflict) -> str:
    """``matmul gets float32 `attn` and bfloat16 `v`, but needs one dtype``."""
    left = describe(conflict, conflict.left, conflict.left_dtype)
    right = describe(conflict, conflict.right, conflict.right_dtype)
    return f"{label(facts, conflict)} gets {left} and {right}, but needs one dtype"
