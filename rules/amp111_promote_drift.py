"""AMP111: activations that become float32 on the way through a half-precision module."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Severity
from amplint.rule import TENSOR_CODE, Example, Rule, Suspect

from ._drift import promotions_of, report_promotion

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.infer.facts import FileFacts
    from amplint.visit import Visit


class PromoteDrift(Rule):
    """A float32 constant or parameter turns half-precision activations into float32, and the module returns them so.

    What it does
    ------------
    Reports sums, products, `torch.cat`, `torch.where` and the other operations that promote, where a half-precision
    operand meets a float32 one that is a constant made without a dtype or a parameter that keeps float32, and
    `forward` returns the result without casting it back. Where an operation in the same file fails for it, that is the
    finding (AMP103, AMP104), and where the float32 operand is a table of a fixed dtype, AMP110 speaks.

    Why it is bad
    -------------
    In a half-precision model everything behind such a module is float32 until a layer with half-precision weights
    raises, which may be in another file; up to there it takes twice the memory, and the products run several times
    slower than in 16 bit.

    How it shows
    ------------
    ```text
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    ```
    in the next layer; or not at all, where only promoting operations follow.

    Example
    -------
    ```python
    weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
    return x * weights
    ```
    Use instead:
    ```python
    weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
    return x * weights.to(x.dtype)
    ```

    Fix safety
    ----------
    Unsafe: the operation is then computed in half precision, and under autocast its result may be narrower than it
    was. The float32 operand is cast to the dtype of the other. Where the operation itself needs float32, cast its
    result instead.
    """

    code: ClassVar[str] = "AMP111"
    name: ClassVar[str] = "promote-drift"
    severity: ClassVar[Severity] = Severity.WARNING
    default: ClassVar[bool] = False
    tokens: ClassVar[tuple[str, ...]] = ("forward",)
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    claims_failure: ClassVar[bool] = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Fade(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
        return self.proj(x) * weights  # expect


def reproduce():
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    assert Fade().to(torch.bfloat16)(x).dtype == x.dtype, "the module returns float32"
""",
            scenario="bf16",
        ),
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.float32))

    def forward(self, x: torch.Tensor):
        normed = x * x.pow(2).mean(-1, keepdim=True).rsqrt()
        return normed * self.weight  # expect


def reproduce():
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    assert RMSNorm(8)(x).dtype == x.dtype, "the norm returns float32"
""",
            scenario="bf16-mixed-params",
        ),
        Example(
            """\
import torch
from torch import nn


class Register(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor):
        blank = torch.zeros(len(x), 1, x.shape[-1], device=x.device)
        return torch.cat([blank, self.norm(x)], dim=1)  # expect


def reproduce():
    x = torch.randn(2, 3, 8, dtype=torch.float16)
    assert Register().half()(x).dtype == x.dtype, "the module returns float32"
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim, dtype=torch.float32))

    def forward(self, x: torch.Tensor):
        normed = x * x.pow(2).mean(-1, keepdim=True).rsqrt()
        return (normed * self.weight).type_as(x)


class Fade(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.norm = RMSNorm(dim)
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor, target: torch.Tensor):
        weights = torch.linspace(0, 1, x.shape[-1], device=x.device)
        faded = self.norm(x) * weights.to(x.dtype) * self.scale + torch.tensor(0.5)
        return torch.cat([x.new_zeros(x.shape), faded]), (weights * (x - target)).mean()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return promotions_of(facts, fixed=False)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        report_promotion(visit, node, suspect)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        report_promotion(visit, node, suspect)
