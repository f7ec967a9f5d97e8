"""Products of complex32 tensors, as a transform of float16 gives them: cuda has no kernels for these.

Which they are is in ``complex_half.json``, which ``amplint.data.generate_complex_half`` makes. Where the size of the
transform is no power of two, cuFFT refuses it before.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from amplint.data import read_table
from amplint.infer.lattice.dtypes import COMPLEX_HALF
from amplint.infer.lattice.values import Const
from amplint.infer.torch_model.torch_ops import sums_nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amplint.infer.lattice.values import Value
    from amplint.infer.state.operand import Operand

_DEVICE = "cuda"


def has_complex_half(operands: Iterable[Operand]) -> bool:
    """Whether an operand may be complex32 in some scenario."""
    return any(lane.mask & COMPLEX_HALF for operand in operands for lane in operand.value.dtypes)


def lacks_complex_half(name: str, arguments: Mapping[str, Value], device: str) -> bool:
    """Whether an operation, called with these arguments, has no kernel for complex32 on a device.

    An ``einsum`` of one operand adds or moves elements, which has one.
    """
    if device != _DEVICE or name not in _lacking():
        return False
    equation = arguments.get("equation")
    written = equation.value if isinstance(equation, Const) and isinstance(equation.value, str) else None
    return written is None or not ("," not in written or sums_nothing(written))


@cache
def _lacking() -> frozenset[str]:
    return frozenset(read_table("complex_half.json")["ops"])
