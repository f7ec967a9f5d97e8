"""What one line of a run did to dtypes: plain data, free of torch, that travels between processes as JSON."""

from __future__ import annotations

from typing import Literal

from amplint.frozen import dataclass
from amplint.verify.plain import Plain

Phase = Literal["forward", "backward"]
Kind = Literal[
    "autocast-cast", "explicit-cast", "promotion", "op-output", "mixed", "kept", "created", "nonfinite", "failed"
]
#: What each kind says of an operation, in the order in which they are told.
KINDS: dict[Kind, str] = {
    "failed": "the operation raised",
    "nonfinite": "inf or NaN appeared here: the value overflowed, or was undefined",
    "promotion": "operands of several dtypes gave the wider one, unasked",
    "autocast-cast": "autocast cast an operand",
    "explicit-cast": "the program asked for the cast",
    "mixed": "operands of several dtypes, and the result is not the wider one by promotion",
    "op-output": "the operation's result has another dtype than its operands",
    "created": "a floating tensor was made from none",
    "kept": "ran, and kept its dtype",
}


@dataclass(frozen=True, slots=True)
class Event(Plain):
    """What happened, ``count`` times, on one source line in one operation with one combination of dtypes.

    Attributes:
        order: The first such operation's place among all operations of the run, from 1.
        kind: One of ``KINDS``.
        op: The overload below autocast and autograd (``aten.mm.default``), or empty where the call failed above it.
        function: The callable that the innermost Python line called (``linear``), for a built-in backward the autograd
            node's name (``MmBackward0``); None for an operator like ``@`` or where it is unknown.
        inputs: The tensor operands' dtype names (``bfloat16``), in order.
        output: The first floating result's dtype name, if there is one.
        shapes: The operands' shapes at the first occurrence, in the order of ``inputs``.
        bytes: Over all occurrences: what casts wrote, what a promoted result takes beyond the lowest operand's dtype.
        filename: Absolute path of the source file; empty where no Python line led to the operation.
        row: Line from 1 (0 without a file).
        where: The qualified name of the function that holds the line.
        phase: Backward operations of built-in nodes lie at the forward line that made the node.
        operands: The operands' names (schema's, or the source's where the call failed above the dispatcher).
        count: Occurrences.
        note: The error's text, or what became inf or NaN.
    """

    order: int
    kind: Kind
    op: str
    function: str | None
    inputs: tuple[str, ...]
    output: str | None
    shapes: tuple[tuple[int, ...], ...]
    bytes: int
    filename: str
    row: int
    where: str
    phase: Phase
    operands: tuple[str, ...] = ()
    count: int = 1
    note: str = ""
