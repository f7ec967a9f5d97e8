"""AMP303: an operation that overflows or loses accuracy in the low precision it is computed in."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Severity
from amplint.infer.dtypes import BITS, LOW
from amplint.infer.values import Const, Trait
from amplint.rule import Example, Rule, Suspect

from ._disagreement import find_expression, find_operand, short_name
from ._low_precision import by_node, causes_of, claimed_lanes, dtype_name, quoted, strongest, surest

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.finding import Certainty, Edit, Fix
    from amplint.infer.facts import FileFacts, Operand, Use
    from amplint.visit import Visit

_SUMS = frozenset(("sum", "mean", "nansum"))
_EXPONENTIALS = frozenset(("exp", "exp2", "expm1", "cosh", "sinh"))
_ACCUMULATED = frozenset(("cumsum", "cumprod", "prod", "logcumsumexp"))
_PROBABILITIES = frozenset(("softmax", "log_softmax", "logsumexp", "logsigmoid"))
_TAKES_DTYPE = frozenset(("cumsum", "cumprod", "prod", "softmax", "log_softmax"))
_SMALL = (Trait.NEGATIVE, Trait.BOUNDED)
_FLOAT16, _EITHER = BITS["float16"], LOW


@dataclass(frozen=True, slots=True)
class _Prone:
    """An operation, its operand, in which scenarios that is low precision, and what goes wrong."""

    use: Use
    operand: Operand
    lanes: dict[int, Certainty]
    what: str


class OverflowProneOp(Rule):
    """A sum of squares, an exponential, a running sum or a softmax is computed in low precision.

    What it does
    ------------
    Reports, where the operand is low precision and nothing upcasts it: `sum` and `mean` of squares, and `exp` and its
    like of numbers that may be large, both in float16; `cumsum`, `cumprod`, `prod`, `softmax`, `log_softmax`,
    `logsumexp` and `logsigmoid` in float16 and bfloat16. CUDA's autocast computes most of them in float32, so the
    findings are about half weights, regions with autocast off, and devices with other cast lists.

    Why it is bad
    -------------
    In float16 a square overflows beyond 256 and `exp` beyond 11: a norm of such activations is infinite and what it
    divides is zero. bfloat16 has the range and 8 bits: a running sum stops growing at 256 times what it adds, and
    probabilities near 1 are equal. Whether that matters depends on the numbers, so the rule is off until selected.

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
    Unsafe: the operation is computed in float32, which changes numbers, and the result stays float32. Cast what becomes
    of it back where a low-precision layer follows.
    """

    code: ClassVar[str] = "AMP303"
    name: ClassVar[str] = "overflow-prone-op"
    severity: ClassVar[Severity] = Severity.WARNING
    default: ClassVar[bool] = False
    tokens: ClassVar[tuple[str, ...]] = (*("mean(", "sum(", "exp", "cosh", "sinh", "prod(", "softmax", "logsigmoid"),)
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
        Example(
            """\
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, keep: torch.Tensor):
        shares = self.gate(x).softmax(-1)  # expect
        place = keep.to(x.dtype).cumsum(0)  # expect
        return -torch.log(1 - shares).mean(), place


def reproduce():
    router = Router()
    nn.init.eye_(router.gate.weight)
    nn.init.zeros_(router.gate.bias)
    x, keep = torch.tensor([[8.0, 0.0]]), torch.ones(300, dtype=torch.bool)
    expected = router(x, keep)
    loss, place = router.bfloat16()(x.bfloat16(), keep)
    torch.testing.assert_close(loss.float(), expected[0], rtol=0.1, atol=0.1)
    torch.testing.assert_close(place.float(), expected[1], rtol=0, atol=0.1)
""",
            scenario="bf16",
        ),
        Example(
            """\
import torch
from torch import nn


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_variance = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return torch.exp(self.log_variance(x))  # expect


def reproduce():
    module = Gaussian()
    nn.init.constant_(module.log_variance.bias, 12.0)
    assert module.half()(torch.zeros(1, 4).half()).isfinite().all(), "exp(12) is infinite in float16"
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
        return self.weight * x, shares, decay, stable, x.sum(), torch.tanh(x).square().mean()


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
        for uses in by_node(facts.uses):
            found = [prone for use in uses if (prone := _prone(facts, use)) is not None]
            if found:
                yield _suspect(facts, found)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _prone(facts: FileFacts, use: Use) -> _Prone | None:
    if not use.operands or _given_dtype(use):
        return None
    short, operand = short_name(use.op).rstrip("_"), use.operands[0]
    trait = operand.value.trait
    failing, what = 0, ""
    if short in _SUMS and trait is Trait.SQUARE:
        failing, what = _FLOAT16, "squares overflow beyond 256"
    elif short in _EXPONENTIALS and trait not in _SMALL:
        failing, what = _FLOAT16, "it overflows beyond 11"
    elif short in _ACCUMULATED:
        failing, what = _EITHER, "rounding adds up"
    elif short in _PROBABILITIES:
        failing, what = _EITHER, "probabilities are rounded"
    lanes = claimed_lanes(facts, use, operand, lambda _, bit: bool(bit & failing)) if failing else {}
    return _Prone(use, operand, surest(lanes), what) if lanes else None


def _given_dtype(use: Use) -> bool:
    dtype = use.arguments.get("dtype")
    return dtype is not None and not (isinstance(dtype, Const) and dtype.value is None)


def _suspect(facts: FileFacts, found: list[_Prone]) -> Suspect:
    worst, lanes, certainty = strongest(found)
    span = facts.span(worst.use.node)
    given = f"{dtype_name(worst.operand, lanes)} {quoted(worst.operand.node, 'tensor')}"
    return Suspect(
        span=span,
        node=span,
        message=f"{short_name(worst.use.op)} of {given} is computed without float32: {worst.what}",
        scenarios=facts.names(lanes),
        certainty=certainty,
        causes=causes_of(facts, worst.operand, worst.lanes),
        data=worst,
    )


def _fix(node: cst.Call, prone: _Prone, visit: Visit) -> Fix | None:
    short = short_name(prone.use.op).rstrip("_")
    if short_name(prone.use.op).endswith("_"):
        return None
    edits: list[Edit] = []
    if short in _SUMS:
        for part in _squared(prone.operand.node):
            found = find_expression(visit, node, part)
            if found is not None:
                edits.append(visit.append(found, ".float()"))
    elif short in _TAKES_DTYPE:
        float32, imports = visit.import_name("torch", "float32")
        edits = [*imports, visit.add_argument(node, f"dtype={float32}")]
    else:
        operand = find_operand(visit, node, prone.operand)
        edits = [visit.append(operand, ".float()")] if operand is not None else []
    return visit.fix(Applicability.UNSAFE, "Compute it in float32", *edits) if edits else None


def _squared(node: ast.expr | None) -> tuple[ast.expr, ...]:
    """What an expression squares, as often as it stands there; nothing where that is elsewhere."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right) if isinstance(node.op, ast.Mult) else (node.left,)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("pow", "square"):
        module = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        return (node.args[0],) if module and node.args else () if module else (node.func.value,)
    return ()
