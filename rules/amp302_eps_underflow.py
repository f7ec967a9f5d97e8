"""AMP302: an epsilon that float16 does not bear: it is zero, or the gradient beside it is infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.low_precision import dtype_expression, quoted, spelled_number, suspect
from amplint.claims.vanishing_epsilons import Vanishing, vanishing_epsilons
from amplint.rewriting.nodes import find_expression
from amplint.rule import Applicability, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit


class EpsUnderflow(Rule):
    """An epsilon such as 1e-8 is zero in float16, or 1e-5 too small for the gradient of an inverse square root there.

    What it does
    ------------
    Reports positive numbers below 3e-8 that are added to a float16 tensor or passed to `clamp`, `F.normalize`,
    `F.cosine_similarity` or `logit` of one. Numbers are followed through names, attributes and defaults, and
    `torch.finfo(torch.float32).tiny` counts as what it is. Under `rsqrt`, without autocast, numbers below 6e-4 beside a
    variance or another number that is not negative are reported as well. In half weights without autocast only what
    evidently reaches zero is told: shares of a softmax or sigmoid, sums and means of squares, what a logarithm is taken
    of; the others need `--pedantic`, and so does an epsilon in front of what is finite at zero, such as a softmax.

    Why it is bad
    -------------
    float16's smallest number is 6e-8. What the epsilon should keep from zero is zero all the same: the division gives
    inf or NaN, the logarithm -inf, and their gradients NaN. It takes a zero to show, so a short run may pass.
    bfloat16 holds such numbers. The gradient of `rsqrt(v)` is `-0.5 * rsqrt(v) ** 3`: where the variance is zero, of a
    padded row say, that is infinite in float16 for an epsilon below 6e-4, and times a gradient of zero it is NaN.

    How it shows
    ------------
    ```text
    train loss: nan
    ```

    Example
    -------
    ```python
    entropy = -(p * torch.log(p + 1e-8)).sum(-1)  # p is float16
    ```
    Use instead:
    ```python
    entropy = -(p * torch.log(p + max(1e-8, torch.finfo(p.dtype).tiny))).sum(-1)
    ```

    Fix safety
    ----------
    Unsafe: in float16 the epsilon becomes 6e-5, its smallest number of full precision, which changes results near
    zero, and under an inverse square root 6e-4. In float32 and bfloat16 nothing changes.
    """

    code: ClassVar[str] = "AMP302"
    name: ClassVar[str] = "eps-underflow"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = ("e-", ".tiny", "smallest_", "0.000")
    context: ClassVar[tuple[str, ...]] = ("torch",)
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class MatchingCost(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        p = self.score(x).sigmoid()
        return -torch.log(p + 1e-8)  # expect


def reproduce():
    module, x = MatchingCost(), torch.zeros(1, 4)
    nn.init.constant_(module.score.bias, -20.0)
    assert module(x).isfinite().all()
    with torch.autocast("cpu", dtype=torch.float16):
        assert module(x).isfinite().all(), "log(0 + 0)"
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Entropy(nn.Module):
    def __init__(self, eps=1e-12):
        super().__init__()
        self.score = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4, eps=1e-12)
        self.eps = eps

    def forward(self, x: torch.Tensor):
        p = self.score(self.norm(x)).sigmoid()
        a = torch.log(p + 1e-6)
        b = torch.log(p.float() + self.eps)
        c = p.clamp(min=torch.finfo(p.dtype).tiny).log()
        d = p / (p.sum(-1, keepdim=True, dtype=torch.float32) + self.eps)
        with torch.autocast(x.device.type, dtype=torch.float16):
            e = nn.functional.normalize(p, eps=1e-12)
        f = (p.var(-1) + 1e-3).rsqrt(), (p.float().var(-1) + 1e-5).rsqrt(), p / (p.var(-1, keepdim=True) + 1e-5).sqrt()
        return a, b, c, d, e, f


def reproduce():
    Entropy()(torch.randn(2, 4))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return (suspect(facts, found, _message) for found in vanishing_epsilons(facts))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _message(found: Vanishing, dtype: str) -> str:
    shown = spelled_number(found.constant, found.use.numbers[found.parameter], "the epsilon")
    tensor = quoted(found.operand.node, "the tensor")
    if found.cubed:
        return f"{shown} is too small beside {dtype} {tensor}: where that is 0, the root's gradient is infinite"
    return f"{shown} rounds to 0 in {dtype}, so {tensor} can still be 0"


def _fix(node: cst.CSTNode, vanishing: Vanishing, visit: Visit) -> Fix | None:
    """The epsilon, or the least that float16 bears where that is larger."""
    constant, dtype = vanishing.constant, dtype_expression(vanishing.use, vanishing.operand)
    found = find_expression(visit, node, constant) if constant is not None and dtype is not None else None
    if found is None:
        return None
    finfo, imports = visit.import_name("torch", "finfo")
    least = f"{finfo}({dtype}).max ** (-2 / 3)" if vanishing.cubed else f"{finfo}({dtype}).tiny"
    text = f"max({visit.code(found)}, {least})"
    return visit.fix(Applicability.UNSAFE, "Use an epsilon that the dtype holds", *imports, visit.replace(found, text))
