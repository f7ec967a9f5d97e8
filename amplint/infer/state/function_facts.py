"""What the inference says of the subclasses of ``torch.autograd.Function`` in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import AUTOCASTABLE

if TYPE_CHECKING:
    import ast

    from amplint.finding import Cause
    from amplint.infer.state.operand import Operand


@dataclass(frozen=True, slots=True)
class DecoratorFact:
    """A decorator as written: its expression and the torch name it resolves to, None where it cannot be resolved."""

    node: ast.expr
    name: str | None
    keywords: tuple[str, ...] = ()
    called: bool = False


@dataclass(frozen=True, slots=True)
class Sensitive:
    """An operation that autocast casts or would be expected to: its place, its torch name, what it is given.

    ``operands`` have the dtypes before autocast's casts; ``written`` are the expressions of its arguments.
    ``variant``: it is the ``out=`` or in-place form, whose operands autocast leaves as they are.
    """

    cause: Cause
    name: str
    operands: tuple[Operand, ...]
    written: tuple[ast.expr | None, ...]
    variant: bool

    @property
    def known(self) -> bool:
        """Whether an operand is known to be one that autocast casts, or assumed to be as an argument; what made the
        others may decide itself what autocast does to them."""
        return any(lane.mask & AUTOCASTABLE for operand in self.operands for lane in operand.value.dtypes)


@dataclass(frozen=True, slots=True)
class AutogradFunction:
    """A subclass of ``torch.autograd.Function``, with the sensitive operations in its bodies and in what they call.

    ``rounded``: autocast has, or may have, rounded something that gets into backward (what forward returns, which gives
    the gradient its dtype, or what it saves), or the gradient meets what a caller may have made under autocast.
    ``settled``: autocast has no say in what backward calls, but for its sensitive operations.
    """

    node: ast.ClassDef
    forward: ast.FunctionDef | None
    backward: ast.FunctionDef | None
    forward_decorators: tuple[DecoratorFact, ...]
    backward_decorators: tuple[DecoratorFact, ...]
    setup_context: ast.FunctionDef | None
    sensitive_forward: tuple[Sensitive, ...]
    sensitive_backward: tuple[Sensitive, ...]
    rounded: bool
    settled: bool
