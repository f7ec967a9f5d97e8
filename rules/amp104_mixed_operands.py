"""AMP104: operands of different dtypes at an operation that wants one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.borrowed_dtype import borrowed
from amplint.claims.compiled_extensions import handed_to_extensions
from amplint.claims.disagreement import describe, disagreement, suspects_of
from amplint.claims.dtypes_by_callers import aligned_elsewhere
from amplint.claims.operands import leads, wider
from amplint.rewriting.casts import alignment
from amplint.rule import TENSOR_CODE, Applicability, Example, Kind, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, FileFacts, Operand, Visit


class MixedOperands(Rule):
    """An operation or layer that wants one dtype gets operands of different ones.

    What it does
    ------------
    Reports matrix products, linear, convolution and recurrent layers, attention layers, norms of a float32 tensor by
    half-precision weights, `lerp`, `grid_sample`, `cross`, `isclose` and the other operations that do not promote,
    where their operands differ in dtype in some scenario and no more special rule speaks: attention calls are AMP101's,
    hardcoded upcasts AMP102's, constants made without a dtype AMP103's, writes by index AMP105's, regions with autocast
    off AMP106's, `out=` and in-place products AMP107's, tables and buffers of a fixed dtype AMP110's.

    An operation in another file of the project that fails for what this file hands it is reported at the call that
    leads there, with the operation as a cause.

    Four more mistakes are the same in kind, and only likely. Under autocast, what a module is given, float32 at first,
    meets what autocast made of it, in an operation for which it casts nothing. What a module makes without a dtype,
    around a layer that it is given or freezes, is float32 beside a loaded model in 16 bit. Where callers decide each
    operand's dtype, and the file casts the one to the dtype of the other in one place but not in another, the latter
    was forgotten. And a tensor that was cast for one module is given to another, which elsewhere gets it as it came.

    A compiled extension that gets activations of different dtypes from under autocast is a warning, since which dtypes
    its kernel takes is not known here.

    Why it is bad
    -------------
    Addition and multiplication promote; these operations raise. In a half-precision model without autocast the odd one
    out is nearly always float32: a norm or a weight that was built with `dtype=torch.float32`, an adapter beside its
    base layer. Under autocast, operations that are on none
    of its lists meet what the listed ones return, float32 from some and 16 bit from others.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    RuntimeError: expected scalar type Float but found BFloat16
    RuntimeError: Input type (float) and bias type (c10::Half) should be the same
    RuntimeError: expected dtype float for `end` but got dtype c10::BFloat16
    ```

    Example
    -------
    ```python
    self.down = nn.Linear(dim, rank, dtype=torch.float32)
    return self.base(x) + self.up(self.down(x))
    ```
    Use instead:
    ```python
    self.down = nn.Linear(dim, rank, dtype=torch.float32)
    return self.base(x) + self.up(self.down(x.to(self.down.weight.dtype))).to(x.dtype)
    ```

    Fix safety
    ----------
    Unsafe: the operation then computes in another precision. Where one operand is a parameter, the others are cast to
    its dtype; otherwise the wider operand is cast to the dtype of the narrower one, which in a half-precision model is
    that of the model.
    """

    code: ClassVar[str] = "AMP104"
    name: ClassVar[str] = "mixed-operands"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("torch", "forward")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, dim=8, rank=2):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.down = nn.Linear(dim, rank, bias=False, dtype=torch.float32)
        self.up = nn.Linear(rank, dim, bias=False, dtype=torch.float32)

    def forward(self, x: torch.Tensor):
        return self.base(x) + self.up(self.down(x))  # expect


def reproduce():
    torch.set_default_dtype(torch.bfloat16)
    try:
        Adapted()(torch.randn(2, 8))
    finally:
        torch.set_default_dtype(torch.float32)
""",
            scenario="bf16-mixed-params",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base: nn.Linear, rank=4):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, dtype=torch.float32)
        self.up = nn.Linear(rank, base.out_features, dtype=torch.float32)

    def forward(self, x: torch.Tensor):
        result = self.base(x)
        if torch.is_autocast_enabled(x.device.type):
            return result + self.up(self.down(x))
        delta = self.up(self.down(x.to(self.down.weight.dtype)))
        return result + delta.to(result.dtype)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        yield from suspects_of(facts, Kind.MIXED)
        for suspect in handed_to_extensions(facts):
            handed: Conflict = suspect.data
            left = describe(handed, handed.left, handed.left_dtype)
            right = describe(handed, handed.right, handed.right_dtype)
            message = f"{handed.op} hands a compiled kernel {left} and {right}, which nothing casts"
            yield replace(suspect, message=message, data=None)
        yield from borrowed(facts)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_AugAssign(self, node: cst.AugAssign, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def _report(self, node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
        conflict: Conflict | None = suspect.data
        if conflict is None:
            visit.report(suspect)
            return
        message = aligned_elsewhere(visit.facts, conflict) or disagreement(visit.facts, conflict)
        for leader in _leaders(conflict):
            edits = alignment(visit, node, conflict, leader)
            if edits is not None:
                fix = visit.fix(Applicability.UNSAFE, "Cast to the dtype of the other operand", *edits)
                visit.report(suspect, fix, message)
                return
        visit.report(suspect, message=message)


def _leaders(conflict: Conflict) -> list[Operand]:
    """The operands whose dtype the others should get, the best first: a parameter, else the narrower one."""
    upcast, narrow = wider(conflict)
    if leads(conflict, upcast) and not leads(conflict, narrow):
        return [upcast]
    return [narrow] if leads(conflict, narrow) and not leads(conflict, upcast) else [narrow, upcast]
