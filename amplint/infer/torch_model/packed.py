"""Packed sequences: what recurrent layers get and give where sequences differ in length.

``PackedSequence`` holds the items of all sequences as one tensor, ``data``, whose dtype is that of the sequence. A
recurrent layer applies its operation to that tensor and packs what comes out; ``pad_packed_sequence`` hands the tensor
back with the lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import BITS
from amplint.infer.lattice.values import UNKNOWN, Sequence, Tensor, Value
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.parts import Parts

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame

FIELDS = ("data", "batch_sizes", "sorted_indices", "unsorted_indices")


def held(value: Value | None) -> Tensor | None:
    """The tensor that a packed sequence holds; None where a value is none."""
    data = value.part("data") if isinstance(value, Parts) and value.fields == FIELDS else None
    return data if isinstance(data, Tensor) else None


def packed_again(result: Value, like: Value) -> Value:
    """What a recurrent layer gives for a packed sequence: its output in the same packing, and its states."""
    if not (isinstance(like, Parts) and like.items and isinstance(result, Sequence) and result.items):
        return UNKNOWN
    output = result.items[0]
    if not isinstance(output, Tensor):
        return UNKNOWN
    return replace(result, items=(replace(like, items=(output, *like.items[1:])), *result.items[1:]))


def padded(frame: Frame, arguments: Arguments) -> Value:
    """``pad_packed_sequence(sequence, …)``: the sequence's tensor, and lengths on the host."""
    data = held(arguments.get(0, "sequence"))
    if data is None:
        return UNKNOWN
    return Sequence((replace(data, leaf=False), Tensor(frame.session.constant(BITS["int64"]), 1, host=True)))
