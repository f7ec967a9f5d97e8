"""AMP303: an operation that overflows or loses accuracy in the low precision it is computed in."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.handed_out import handed_out
from amplint.claims.low_precision import quoted, suspect
from amplint.claims.normalising import squared
from amplint.claims.operands import dtype_of_tensor, short_name
from amplint.claims.prone_operations import SUMS, Prone, prone_operations
from amplint.claims.surroundings import Surroundings
from amplint.rewriting.nodes import find_expression, find_operand
from amplint.rule import Applicability, Edit, Example, Rule, Severity, Span, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit

_TAKES_DTYPE = frozenset(("cumsum", "cumprod", "prod", "softmax", "log_softmax"))


class OverflowProneOp(Rule):
    """A sum of squares, a running sum, a decay or the softmax of a router is computed in low precision.

    What it does
    ------------
    Reports, where the operand is low precision and nothing upcasts it: in float16 the `mean` of squares by whose root
    the function scales what it squared, as normalisation layers do, and sums of squares of the gradients that a
    communication hook gets; in float16 and bfloat16 `cumsum`, `cumprod` and `logcumsumexp`, the exponential of an
    exponential, and a `softmax` whose shares `topk` or `argmax` choose by and then weigh what was chosen. CUDA's
    autocast computes these in float32, so the findings are about half weights, regions with autocast off, and devices
    with other cast lists. Under autocast as well: the logarithm of a float16 `sigmoid` or `softmax`, and of 1 less such
    a low-precision number.

    With `--pedantic` also where it depends on the numbers whether that matters: any other `softmax`, `log_softmax`,
    `logsumexp`, `logsigmoid` and `prod`, other sums and means of squares (norms, distances, losses), running sums of
    what may be a mask, and in float16 `exp` and its like of numbers that may be large.

    Why it is bad
    -------------
    In float16 a square overflows beyond 256 and `exp` beyond 11: a norm of such activations is infinite and what it
    divides is zero. bfloat16 has the range and 8 bits: a running sum stops growing at 256 times what it adds, a
    decay of 0.999 is 1, and experts whose shares are close are chosen by their order.

    How it shows
    ------------
    ```text
    train loss: nan
    ```

    Example
    -------
    ```python
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
    ```
    Use instead:
    ```python
    scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps).to(x.dtype)
    ```

    Fix safety
    ----------
    Unsafe: the operation is computed in float32, which changes numbers, and the result stays float32. What the function
    computes from it and returns is cast back; where that cannot be written, the fix is only shown. Logarithms have no
    fix: use `F.logsigmoid(x)`, `F.logsigmoid(-x)` or `F.log_softmax(x, -1)` of the float32 logits.
    """

    code: ClassVar[str] = "AMP303"
    name: ClassVar[str] = "overflow-prone-op"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = (
        *("mean(", "sum(", "exp", "cosh", "sinh", "prod(", "softmax", "Softmax(", "logsigmoid", "log(", "log2("),
    )
    context: ClassVar[tuple[str, ...]] = ("torch",)
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor):
        norm = torch.mean(x * x, dim=-1, keepdim=True)  # expect
        return self.weight * (x * torch.rsqrt(norm + 1e-6))


def reproduce():
    x = torch.full((1, 8), 300.0)
    torch.testing.assert_close(RMSNorm(8)(x), torch.ones(1, 8))
    torch.testing.assert_close(RMSNorm(8).half()(x.half()).float(), torch.ones(1, 8), rtol=1e-2, atol=1e-2)
""",
            scenario="fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor):
        variance = x.float().pow(2).mean(-1, keepdim=True)
        x = (x * torch.rsqrt(variance + 1e-6)).to(x.dtype)
        shares = torch.softmax(x, -1, dtype=torch.float32)
        decay = torch.exp(-nn.functional.softplus(x))
        stable = torch.exp(x - x.amax(-1, keepdim=True))
        spread = torch.tanh(x).square().mean(-1)
        logs = (1 - shares).log(), torch.log(1 - x.sigmoid() + 1e-3), torch.log(x.softmax(-1).clamp(min=1e-4))
        return self.weight * x, logs, shares, shares.topk(1), decay, stable, x.sum(), spread, x.softmax(-1).to(x.dtype)


class UnderAutocast(nn.Module):
    \"\"\"Autocast computes these in float32.\"\"\"

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            h = self.proj(x)
            return h.softmax(-1), h.exp(), h.cumsum(0), h.pow(2).mean()


def reproduce():
    Norm(4)(torch.randn(2, 4))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return (suspect(facts, found, _message) for found in prone_operations(facts))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _message(found: Prone, dtype: str) -> str:
    given = f"{short_name(found.use.op)} of {dtype} {quoted(found.operand.node, 'tensor')}"
    return f"{given}{'' if found.is_logarithm else ' stays in 16 bit'}: {found.what}"


def _fix(node: cst.Call, prone: Prone, visit: Visit) -> Fix | None:
    short = short_name(prone.use.op)
    if short.endswith("_") or prone.is_logarithm:
        return None
    edits: list[Edit] = []
    if short in SUMS:
        for part in squared(Surroundings.of(visit.facts.source.tree), prone.operand.node):
            found = find_expression(visit, node, part)
            edits += [visit.append(found, ".float()")] if found is not None else []
    elif short in _TAKES_DTYPE and _is_function(prone, Surroundings.of(visit.facts.source.tree)):
        float32, imports = visit.import_name("torch", "float32")
        edits = [*imports, visit.add_argument(node, f"dtype={float32}")]
    else:
        operand = find_operand(visit, node, prone.operand)
        edits = [visit.append(operand, ".float()")] if operand is not None else []
    if not edits:
        return None
    casts = _casts_of_returns(prone, visit)
    shown = Applicability.UNSAFE if casts is not None else Applicability.DISPLAY
    return visit.fix(shown, "Compute it in float32", *edits, *(casts or ()))


def _is_function(prone: Prone, around: Surroundings) -> bool:
    """Whether a function of torch or a method of the tensor is called, and no layer, which takes no dtype."""
    call = prone.use.node
    if not isinstance(call, ast.Call):
        return False
    method = isinstance(call.func, ast.Attribute) and call.func.value is prone.operand.node
    return method or (around.torch_name(call.func) or "").rpartition(".")[2] == short_name(prone.use.op)


def _casts_of_returns(prone: Prone, visit: Visit) -> list[Edit] | None:
    """Cast what the function returns of a wide result to the operand's dtype; None where that cannot be written."""
    call, around = prone.use.node, Surroundings.of(visit.facts.source.tree)
    found = handed_out(call, around) if isinstance(call, ast.Call) else None
    if found is None:
        return []
    dtype = dtype_of_tensor(prone.operand.node) if prone.operand.node is not None else None
    if dtype is None or dtype.split(".", 1)[0].split("[", 1)[0] in found.bound:
        return None
    edits = []
    for value in found.values:
        span = visit.facts.span(value)
        simple = isinstance(value, ast.Name | ast.Call | ast.Subscript)
        edits += [] if simple else [Edit(Span(span.start, span.start), "(")]
        edits.append(Edit(Span(span.end, span.end), f"{'' if simple else ')'}.to({dtype})"))
    return edits
