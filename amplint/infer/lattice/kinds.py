"""Questions about the kind of a dtype: floating, complex, signed."""

from __future__ import annotations

from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.dtypes import BITS, BOOL, COMPLEX, FLOATS, Dtypes

KINDS = {
    "is_floating_point": FLOATS,
    "is_complex": COMPLEX,
    "is_signed": ~(BOOL | BITS["uint8"]),
}
"""Methods of tensors, functions of torch, and attributes of dtypes, with the dtypes that they are true for."""


def asked(dtypes: Dtypes, name: str) -> AutocastFlag:
    """Where the answer to one of :data:`KINDS` can be True, and can be False."""
    on = off = 0
    for number, lane in enumerate(dtypes):
        on |= (not lane.known or bool(lane.mask & KINDS[name])) << number
        off |= (not lane.known or bool(lane.mask & ~KINDS[name])) << number
    return AutocastFlag(on, off)
