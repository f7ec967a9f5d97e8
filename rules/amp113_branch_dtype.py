"""AMP113: a function whose returns give different dtypes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.operands import dtype_in
from amplint.claims.returned_inputs import returned_input
from amplint.claims.surroundings import Surroundings
from amplint.rule import ASSUMED, TENSOR_CODE, Applicability, Edit, Example, Rule, Severity, Span, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit


class BranchDtype(Rule):
    """Two returns of one function give tensors of different dtypes for the same input.

    What it does
    ------------
    Reports functions with several `return` statements that are reached with the same inputs, where the returned
    tensors, or those in the same place of a tuple, have different floating dtypes in a run without autocast. The
    finding lies at the return whose dtype is fixed in the source. Under autocast branches differ by design, since some
    operations lower their result and others leave it. A branch on the input's own dtype or kind is meant.

    Why it is bad
    -------------
    Which branch runs depends on a flag, on an empty batch or on whether a cache exists: the dtype then changes between
    training and evaluation, between the first call and the second, or on the one rank whose batch was empty, and the
    mismatch comes up somewhere else.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    ```
    in the caller, on one of the paths.

    Example
    -------
    ```python
    if x.numel() == 0:
        return torch.empty(shape, dtype=torch.float16, device=x.device)
    return self.proj(x)
    ```
    Use instead:
    ```python
    if x.numel() == 0:
        return torch.empty(shape, dtype=x.dtype, device=x.device)
    return self.proj(x)
    ```

    Fix safety
    ----------
    Unsafe: callers get another dtype. Where one return gives back an argument as it came, the other is cast to its
    dtype. Else there is no fix: which of the two dtypes the callers expect is not to be seen here.
    """

    code: ClassVar[str] = "AMP113"
    name: ClassVar[str] = "branch-dtype"
    severity: ClassVar[Severity] = Severity.WARNING
    default: ClassVar[bool] = False
    tokens: ClassVar[tuple[str, ...]] = ("return",)
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    claims_failure: ClassVar[bool] = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor, keep: bool = True):
        hidden = self.proj(x)
        if not keep:
            return torch.zeros(x.shape, device=x.device)  # expect
        return hidden


def reproduce():
    pool, x = Pool().half(), torch.ones(2, 8).half()
    assert pool(x).dtype == pool(x, keep=False).dtype
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor, keep: bool = True):
        if x.dtype == torch.float32:
            return self.proj(x.to(self.proj.weight.dtype)).float()
        if x.shape[0] == 0:
            return torch.zeros_like(x)
        if not keep:
            return x
        return self.proj(x)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        around = Surroundings.of(facts.source.tree) if facts.branches else None
        for found in facts.branches:
            here, there = (dtype_in(operand, found.lanes[0]) for operand in (found.tensor, found.reference))
            span, row = facts.span(found.node), facts.span(found.other).start.row
            suspect = Suspect(
                span=span,
                node=span,
                message=f"this returns {here}, and line {row} returns {there} for the same input",
                scenarios=facts.names(found.lanes),
                standing=ASSUMED,
                causes=facts.causes((found.tensor, found.reference), found.lanes[0]),
                data=found,
            )
            asked = around is not None and any(around.guarded(n, _asks_for_dtype) for n in (found.node, found.other))
            yield suspect.doubted(doubts.ASKS_FOR_DTYPE) if asked else suspect

    def visit_Name(self, node: cst.Name, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(suspect, visit))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(suspect, visit))

    def visit_Tuple(self, node: cst.Tuple, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(suspect, visit))


def _fix(suspect: Suspect, visit: Visit) -> Fix | None:
    """Cast what is returned to the dtype of the argument that the other return gives back."""
    argument = returned_input(suspect.data, Surroundings.of(visit.facts.source.tree))
    if argument is None or not isinstance(argument.value, ast.Name | ast.Call):
        return None
    end = visit.facts.span(argument.value).end
    edits = [Edit(Span(end, end), f".to({argument.dtype})")]
    if argument.kept is not None:
        text, statement = argument.kept
        edits.append(visit.insert_statement(visit.facts.span(statement).start, text))
    return visit.fix(Applicability.UNSAFE, "Return it in the dtype that it came in", *edits)


def _asks_for_dtype(test: ast.expr) -> bool:
    """Whether the answer depends on the dtype or kind of what came in."""
    text = ast.unparse(test)
    return any(word in text for word in ("dtype", "is_floating_point", "is_complex", "isinstance"))
