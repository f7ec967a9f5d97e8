"""Values that stand for states of torch: of autocast, and of a Function's ``ctx``."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.lattice.values import UNKNOWN, Value

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Hashable

    from amplint.infer.lattice.dtypes import Autocast


@dataclass(frozen=True, slots=True, eq=False)
class AutocastFlag(Value):
    """The answer of an autocast query, or of a comparison of dtypes: bit masks of the scenarios in which it can be
    True, and can be False."""

    on: int
    off: int

    @property
    def key(self) -> Hashable:
        return ("flag", self.on, self.off)


@dataclass(frozen=True, slots=True, eq=False)
class AutocastContext(Value):
    """An autocast context manager or decorator, not yet entered: how it changes a state, and how it was written."""

    name: str
    enter: Callable[[Autocast], Autocast]
    dtype_given: bool
    node: ast.expr
    call: ast.Call | None

    @property
    def key(self) -> Hashable:
        return ("autocast", id(self.node))


@dataclass(slots=True, eq=False)
class AutogradContext(Value):
    """``ctx`` of an autograd Function: what forward stored for backward."""

    attributes: dict[str, Value] = field(default_factory=dict)
    saved: Value = UNKNOWN
