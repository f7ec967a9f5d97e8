"""AMP107: a matrix product in the ``out=`` or in-place form, where autocast does not act."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.disagreement import describe, suspects_of
from amplint.claims.idle_upcasts import may_be_under_autocast
from amplint.claims.operands import dtype_of, short_name
from amplint.rewriting.casts import cast_to_lead
from amplint.rule import TENSOR_CODE, Applicability, Example, Kind, Rule, Severity, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import Conflict, FileFacts, Fix, Operand, Visit


class OutVariantMatmul(Rule):
    """A matrix product with `out=` or in place gets operands that autocast would align in the plain form.

    What it does
    ------------
    Reports `addmm_`, `baddbmm_`, `addbmm_`, `addmv_` and the functions of the matmul family with `out=`, where the
    matrices and the tensor that is written differ in dtype.

    Why it is bad
    -------------
    Autocast wraps the functional forms only. `torch.addmm(c, a, b)` under autocast casts all three; `c.addmm_(a, b)`
    and `torch.addmm(c, a, b, out=c)` take them as they are and raise. So an activation that an earlier layer made
    bfloat16 meets a float32 accumulator. Decorating an `autograd.Function` with `custom_fwd` changes nothing about
    this: it leaves autocast on in forward, and autocast does not reach these forms.

    How it shows
    ------------
    ```text
    RuntimeError: self and mat2 must have the same dtype, but got Float and BFloat16
    RuntimeError: Expected out tensor to have dtype c10::BFloat16, but got float instead
    RuntimeError: Input dtypes must be the same, got: input float, batch1: c10::BFloat16, batch2: c10::BFloat16
    ```

    Example
    -------
    ```python
    self.covariance.addmm_(h.t(), h)  # h is bfloat16 under autocast, the buffer float32
    ```
    Use instead:
    ```python
    self.covariance.addmm_(h.t().to(self.covariance.dtype), h.to(self.covariance.dtype))
    ```

    Fix safety
    ----------
    Every matrix is cast to the dtype of the tensor that is written. These forms demand equal dtypes, so the casts do
    nothing wherever the program ran before: the fix is safe where that tensor is known to be there, and unsafe where
    `out` may be something else than a tensor. Where its dtype cannot be named, or it may be None, there is no fix.
    """

    code: ClassVar[str] = "AMP107"
    name: ClassVar[str] = "out-variant-matmul"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("out=", "out =", "mm_", "mv_")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Whitening(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 4)
        self.register_buffer("covariance", torch.zeros(4, 4))

    def forward(self, x):
        h = self.proj(x)
        with torch.no_grad():
            self.covariance.addmm_(h.t(), h, beta=0.9, alpha=0.1)  # expect
        return h


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Whitening()(torch.randn(2, 8))
""",
            scenario="autocast-bf16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Whitening(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 4)
        self.register_buffer("covariance", torch.zeros(4, 4))

    def forward(self, x):
        h = self.proj(x)
        with torch.no_grad():
            rows = h.to(self.covariance.dtype)
            self.covariance.addmm_(rows.t(), rows)
            self.covariance += h.t() @ h
            self.covariance.copy_(torch.addmm(self.covariance, h.t(), h))
        return h


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Whitening()(torch.randn(2, 8))
    Whitening().bfloat16()(torch.randn(2, 8, dtype=torch.bfloat16))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        found = [*suspects_of(facts, Kind.OUT_VARIANT)]
        asked = _under_tests_of_dtypes(facts.source.tree) if found else ()
        for suspect in found:
            conflict: Conflict = suspect.data
            told = replace(suspect, message=_message(conflict))
            reasons = {
                doubts.ASKS_FOR_DTYPE: id(conflict.node) in asked,
                doubts.RUN_BY_NO_MODULE: not may_be_under_autocast(facts, conflict),
            }
            yield told.doubted(*(doubt for doubt, holds in reasons.items() if holds))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _under_tests_of_dtypes(tree: ast.Module) -> set[int]:
    """The nodes below an ``if`` whose test compares dtypes: which ones come through it is not for the rule to say."""
    asked: set[int] = set()
    for branch in (node for node in ast.walk(tree) if isinstance(node, ast.If)):
        compared = (n for n in ast.walk(branch.test) if isinstance(n, ast.Compare))
        sides = (side for comparison in compared for side in (comparison.left, *comparison.comparators))
        if any(isinstance(side, ast.Attribute) and side.attr == "dtype" for side in sides):
            asked.update(id(node) for statement in branch.body for node in ast.walk(statement))
    return asked


def _message(conflict: Conflict) -> str:
    left = describe(conflict, conflict.left, conflict.left_dtype)
    right = describe(conflict, conflict.right, conflict.right_dtype)
    form = "in-place" if _given(conflict, "out") is None else "`out=`"
    return f"{short_name(conflict.op)} gets {left} and {right}: its {form} form needs one dtype, under autocast too"


def _given(conflict: Conflict, name: str) -> Operand | None:
    return next((operand for operand in conflict.operands if operand.name == name), None)


def _fix(node: cst.Call, conflict: Conflict, visit: Visit) -> Fix | None:
    """Cast every operand to the dtype of the tensor that is written; None where not all of that can be written down."""
    destination = _given(conflict, "out") or _given(conflict, "self")
    dtype = dtype_of(visit.facts, conflict, destination) if destination is not None else None
    if destination is None or dtype is None or destination.value.optional:
        return None
    edits = cast_to_lead(visit, node, conflict, destination, f".to({dtype})")
    if not edits:
        return None
    safe = not destination.value.maybe or destination.name == "self"
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    return visit.fix(applicability, "Cast the matrices to the dtype of the tensor that is written", *edits)
