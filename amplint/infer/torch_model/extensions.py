"""What is handed to code that autocast does not know: a Function of the project, or another library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.strength import Strength
from amplint.infer.lattice.values import Tensor
from amplint.infer.state.facts import Kind, Mismatch
from amplint.infer.state.operand import Operand
from amplint.infer.torch_model.mismatches import compare, record
from amplint.infer.torch_model.provenance import is_upcast

if TYPE_CHECKING:
    import ast

    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame


def handed_over(frame: Frame, node: ast.expr, name: str, arguments: Arguments) -> None:
    """Record activations of different dtypes that are handed to something that autocast does not know: a Function, or
    another library. Which dtypes that takes is not known here; parameters may well be meant to stay float32."""
    if frame.constructing is not None or not frame.session.recorder.concerns(frame):
        return
    operands = [
        Operand(f"argument {number + 1}", arguments.nodes.get(number), value)
        for number, value in enumerate(arguments.positional)
        if isinstance(value, Tensor) and not value.leaf and not value.maybe and value.dim != 0
    ]
    for index, left in enumerate(operands):
        for right in operands[index + 1 :]:
            found = compare(frame, left, right)
            lanes = [n for n, how in found.items() if how is Strength.FORCED and frame.autocast[n].on]
            if lanes and not any(is_upcast(operand.value, lanes[0]) for operand in (left, right)):
                pair = (left, right)
                record(frame, Mismatch(node, name, Kind.EXTENSION, pair, tuple(operands), tuple(lanes), cited=True))
                return
