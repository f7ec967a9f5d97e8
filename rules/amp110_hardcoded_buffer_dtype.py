"""AMP110: a table or cache of a fixed dtype that meets tensors of another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.disagreement import suspects_of
from amplint.claims.made_tensors import causes, message
from amplint.claims.silent_float32 import promotions_of
from amplint.finding import Applicability, Severity
from amplint.infer.facts import Kind, Promotion
from amplint.rewriting.casts import alignment, report_promotion
from amplint.rule import TENSOR_CODE, Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.infer.facts import Conflict, FileFacts
    from amplint.visit import Visit


class HardcodedBufferDtype(Rule):
    """A table, cache or buffer keeps the dtype that it was made with and meets tensors of the model's dtype.

    What it does
    ------------
    Reports matrix products, convolutions, layers and the other operations that want one dtype, where one operand is

    - a tensor made with a dtype that is spelled out (`torch.arange(n, dtype=torch.float32)`, a table of constants), or
    - a tensor kept in a plain attribute, which `model.half()` and `model.to(dtype)` do not reach, or
    - a buffer that keeps float32 in the scenario,

    and the other operand follows the model. Where such a tensor is added to or multiplied with activations, nothing
    raises; that is reported, as a warning, if `forward` returns the float32 that comes out.

    Why it is bad
    -------------
    `register_buffer` follows the module's dtype, a plain attribute does not; a table built in `float32` for accuracy
    stays float32 on its way through sines and products, and turns everything that it is multiplied with into float32.
    All this works until the model is loaded in 16 bit, or autocast lowers what the table meets.

    How it shows
    ------------
    ```text
    RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::Half != float
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    RuntimeError: Input type (c10::BFloat16) and weight type (float) should be the same
    ```

    Example
    -------
    ```python
    self.dct = make_dct(n)  # a plain attribute
    return power.log() @ self.dct.to(power.device)
    ```
    Use instead:
    ```python
    self.register_buffer("dct", make_dct(n), persistent=False)
    return power.log() @ self.dct.to(power.dtype)
    ```

    Fix safety
    ----------
    Unsafe: the operation then computes in another precision. The table is cast where it is used, to the dtype of the
    other operand: what it was computed from stays in float32. Registering it as a buffer instead is often the better
    cure, but changes the module's state.
    """

    code: ClassVar[str] = "AMP110"
    name: ClassVar[str] = "hardcoded-buffer-dtype"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("torch", "forward")
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import math

import torch
from torch import nn


class Cepstrum(nn.Module):
    def __init__(self, bands=8, kept=4):
        super().__init__()
        n = torch.arange(float(bands))
        k = torch.arange(float(kept))[:, None]
        self.dct = torch.cos(math.pi / bands * (n + 0.5) * k).t()

    def forward(self, power: torch.Tensor):
        return torch.matmul(power.log(), self.dct.to(power.device))  # expect


def reproduce():
    Cepstrum().half()(torch.rand(2, 8).half() + 1)
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import math

import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.dim = dim
        self.mlp = nn.Linear(dim, dim)
        self.register_buffer("rotation", torch.eye(dim, dtype=torch.float32))
        self.limits = torch.tensor([0.0, 1.0])
        self.mask = torch.ones(dim, dim).tril() == 0

    def forward(self, x: torch.Tensor, steps: torch.Tensor):
        rates = torch.exp(-math.log(10000) * torch.arange(self.dim, dtype=torch.float32) / self.dim)
        angles = (steps[:, None] * rates).to(x.dtype)
        x = x.masked_fill(self.mask[0], 0) @ self.rotation.to(x)
        return x + self.mlp(angles.clamp(self.limits[0], self.limits[1]))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for suspect in suspects_of(facts, Kind.TABLE):
            yield replace(suspect, causes=causes(suspect.data))
        yield from promotions_of(facts, fixed=True)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def visit_AugAssign(self, node: cst.AugAssign, suspect: Suspect, visit: Visit) -> None:
        self._report(node, suspect, visit)

    def _report(self, node: cst.CSTNode, suspect: Suspect, visit: Visit) -> None:
        if isinstance(suspect.data, Promotion):
            report_promotion(visit, node, suspect)
            return
        conflict: Conflict = suspect.data
        made = conflict.made
        assert made is not None
        text = message(visit.facts, conflict, made)
        other = conflict.right if made.operand is conflict.left else conflict.left
        for leader in (other, made.operand):
            edits = alignment(visit, node, conflict, leader)
            if edits is not None:
                fix = visit.fix(Applicability.UNSAFE, "Cast to the dtype of the other operand", *edits)
                visit.report(suspect, fix, text)
                return
        visit.report(suspect, message=text)
