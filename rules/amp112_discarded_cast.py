"""AMP112: a cast of a tensor whose result is thrown away."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.cast_receivers import place
from amplint.claims.discarded_casts import discarded_casts
from amplint.claims.operands import is_stable
from amplint.rule import TENSOR_CODE, Applicability, Example, Rule, Severity, Standing, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import CastCall, FileFacts, Visit


class DiscardedCast(Rule):
    """A cast of a tensor is a statement of its own, so its result is thrown away and the tensor keeps its dtype.

    What it does
    ------------
    Reports `x.half()`, `x.float()`, `x.to(torch.bfloat16)`, `x.to(device, dtype)`, `x.type(...)` and the like as
    statements, where `x` is known to be a tensor. Modules convert themselves in place and are not reported.

    Why it is bad
    -------------
    `Tensor.to` and its like return a new tensor and leave the old one alone, unlike `Module.to`. The code reads as if
    the tensor had the new dtype: what follows computes in the old one, or meets tensors that were really cast.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    ```
    where the tensor that was not cast meets others; or not at all, but for the time and memory of float32.

    Example
    -------
    ```python
    for name, buffer in self.named_buffers():
        buffer.to(torch.bfloat16)
    self.table.half()
    ```
    Use instead:
    ```python
    for name, buffer in self.named_buffers():
        buffer.data = buffer.to(torch.bfloat16)
    self.table = self.table.half()
    ```

    Fix safety
    ----------
    Unsafe: the tensor then has another dtype. The result is assigned to the name or attribute that was cast. There is
    no fix for a parameter, which cannot be replaced by a tensor, nor for the variable of a loop, where assigning would
    be as much in vain.
    """

    code: ClassVar[str] = "AMP112"
    name: ClassVar[str] = "discarded-cast"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = (
        *(".to(", ".type(", ".type_as(", ".half()", ".float()", ".double()", ".bfloat16()"),
        *(".int()", ".long()", ".short()", ".bool()", ".byte()", ".char()"),
    )
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    claims_failure: ClassVar[bool] = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, length=16, dim=8):
        super().__init__()
        self.table = torch.randn(length, dim)

    def forward(self, x: torch.Tensor):
        self.table.to(x.dtype)  # expect
        return x + self.table[: x.shape[1]]


def reproduce():
    module, x = Positions().half(), torch.randn(1, 4, 8).half()
    assert module(x).dtype == x.dtype, "the table is still float32, and so is the sum"
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.proj.eval()
        self.proj.float()
        self.register_buffer("table", torch.zeros(dim))

    def forward(self, x: torch.Tensor, model):
        model.half()
        model.head.to(x.dtype)
        model.requires_grad_(False).to(x.dtype)
        self.table.to(x.device)
        x.clamp_(0)
        dtype = self.table.data.dtype
        self.table.data.add_(x.mean(0).float()).to(dtype)
        self.table.to(self.table.dtype)
        self.table = self.table.to(x.dtype)
        return self.proj(x.to(self.proj.weight.dtype))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for cast, lanes in discarded_casts(facts):
            assert isinstance(cast.node.func, ast.Attribute)
            receiver = ast.unparse(cast.node.func.value)
            yield Suspect(
                span=place(facts, cast.node),
                node=facts.span(cast.node),
                message=f"`.{cast.node.func.attr}()` returns a new tensor, which is thrown away: `{receiver}` stays as "
                "it is",
                scenarios=facts.names(lanes) if len(lanes) < len(facts.scenarios) else facts.all_scenarios(),
                standing=Standing(forced=not cast.tensor.maybe),
                data=cast,
            )

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        cast: CastCall = suspect.data
        assert isinstance(cast.node.func, ast.Attribute)
        target = cast.node.func.value
        statement = visit.parent(node)
        whole = isinstance(statement, cst.Expr) and statement.value is node
        if not whole or cast.tensor.leaf or not is_stable(target) or _is_loop_variable(visit.facts, target):
            visit.report(suspect)
            return
        edit = visit.insert_before(node, f"{ast.unparse(target)} = ")
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Assign the result", edit))


def _is_loop_variable(facts: FileFacts, target: ast.expr) -> bool:
    loops = (node for node in ast.walk(facts.source.tree) if isinstance(node, ast.For))
    return isinstance(target, ast.Name) and any(
        isinstance(name, ast.Name) and name.id == target.id for loop in loops for name in ast.walk(loop.target)
    )
