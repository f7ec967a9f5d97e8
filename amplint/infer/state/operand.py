"""What an operation is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from amplint.frozen import dataclass

if TYPE_CHECKING:
    import ast

    from amplint.infer.lattice.values import Origin, Tensor


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor operand of an operation: parameter name, the expression that gave it, its value."""

    name: str
    node: ast.expr | None
    value: Tensor


@dataclass(frozen=True, slots=True)
class MadeOperand:
    """An operand that got its dtype where it was made, and from no other tensor.

    ``kept``: it was stored since, as a buffer or a plain attribute. ``fixed``: kept, or made with a dtype that is
    spelled out.
    """

    operand: Operand
    maker: Origin
    kept: Literal["buffer", "attribute"] | None
    fixed: bool
