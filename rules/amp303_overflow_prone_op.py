"""AMP303: an operation that overflows or loses accuracy in the low precision it is computed in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.choices import decides
from amplint.claims.complex_parts import is_modulus
from amplint.claims.low_precision import (
    by_node,
    causes_of,
    claimed_lanes,
    doubted,
    dtype_name,
    in_autograd_function,
    low_lanes,
    quoted,
    strongest,
    surest,
)
from amplint.claims.normalising import is_rooted
from amplint.claims.operands import short_name
from amplint.claims.surroundings import Surroundings
from amplint.finding import Applicability, Severity
from amplint.infer.dtypes import BITS, LOW
from amplint.infer.scenarios import CONTROL
from amplint.infer.torch_ops import LOGARITHMS
from amplint.infer.values import Const, Trait
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED
from amplint.rewriting.nodes import find_expression, find_operand
from amplint.rule import Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.finding import Doubt, Edit, Fix
    from amplint.infer.facts import FileFacts, Operand, Use
    from amplint.judge.certainty import Standing
    from amplint.visit import Visit

_SUMS = frozenset(("sum", "mean", "nansum"))
_NORMS = frozenset(("norm", "vector_norm"))
_GRADIENTS = (Trait.GRADIENT, Trait.BUCKET)
_GRADIENT_SQUARES = (Trait.GRADIENT_SQUARE, Trait.BUCKET_SQUARE)
_EXPONENTIALS = frozenset(("exp", "exp2", "expm1", "cosh", "sinh"))
_ACCUMULATED = frozenset(("cumsum", "cumprod", "logcumsumexp"))
_PRODUCT = "prod"
_SHARES = "softmax"
_LOGARITHMS_OF_SHARES = frozenset(("log_softmax", "logsumexp", "logsigmoid"))
_TAKES_DTYPE = frozenset(("cumsum", "cumprod", "prod", "softmax", "log_softmax", "norm", "vector_norm"))
_SMALL = (Trait.NEGATIVE, Trait.DECAY, Trait.BOUNDED, Trait.SHARE, Trait.REST)
_SQUARES = "squares overflow beyond 256"
_BARE_SQUARES = f"{_SQUARES}, and are zero below 1.7e-4"
_FLOAT16, _EITHER = BITS["float16"], LOW


@dataclass(frozen=True, slots=True)
class _Prone:
    """An operation, its operand, in which scenarios that is low precision, and what goes wrong."""

    use: Use
    operand: Operand
    lanes: dict[int, Standing]
    what: str


class OverflowProneOp(Rule):
    """A sum of squares, a running sum, a decay or the softmax of a router is computed in low precision.

    What it does
    ------------
    Reports, where the operand is low precision and nothing upcasts it: `sum` and `mean` of squares over some dimensions
    in float16 whose root the function takes, as norms do, sums of squares of the gradients that a communication hook
    gets in float16, and in float16 and bfloat16 `cumsum`, `cumprod` and `logcumsumexp`, the exponential of an
    exponential, and a `softmax` whose shares `topk` or `argmax` then choose by. CUDA's autocast computes these in
    float32, so the findings are about half weights, regions with autocast off, and devices with other cast lists. Under
    autocast as well: the logarithm of a float16 `sigmoid` or `softmax`, and of 1 less such a low-precision number.

    With `--pedantic` also where it depends on the numbers whether that matters: any other `softmax`, `log_softmax`,
    `logsumexp`, `logsigmoid` and `prod`, other sums and means of squares (distances, losses, lengths of vectors whose
    root nothing is added to), norms and sums of squares of gradients of float16 parameters, and in float16 `exp` and
    its like of numbers that may be large.

    Why it is bad
    -------------
    In float16 a square overflows beyond 256 and `exp` beyond 11: a norm of such activations is infinite and what it
    divides is zero. Below 1.7e-4 a square is zero, and so is the root of a mean that nothing was added to before: what
    it divides is infinite. bfloat16 has the range and 8 bits: a running sum stops growing at 256 times what it adds, a
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
    Unsafe: the operation is computed in float32, which changes numbers, and the result stays float32. Cast what becomes
    of it back where a low-precision layer follows. Logarithms have no fix: use `F.logsigmoid(x)`, `F.logsigmoid(-x)` or
    `F.log_softmax(x, -1)` of the float32 logits.
    """

    code: ClassVar[str] = "AMP303"
    name: ClassVar[str] = "overflow-prone-op"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = (
        *("mean(", "sum(", "exp", "cosh", "sinh", "prod(", "softmax", "logsigmoid", "norm(", "log(", "log2("),
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
        surroundings: Surroundings | None = None
        for uses in by_node(facts.uses):
            found = [prone for use in uses if (prone := _prone(facts, use)) is not None]
            if not found:
                continue
            surroundings = surroundings or Surroundings.of(facts.source.tree)
            yield _suspect(facts, [_judged(prone, surroundings) for prone in found])

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _prone(facts: FileFacts, use: Use) -> _Prone | None:
    if not use.operands or _given_dtype(use):
        return None
    short, operand = short_name(use.op).rstrip("_"), use.operands[0]
    hazard = _hazard(short, operand.value.trait)
    if hazard is None:
        return None
    failing, what = hazard
    differentiated = in_autograd_function(facts, use)
    if operand.value.trait in (*_GRADIENTS, *_GRADIENT_SQUARES):
        lanes = _lanes_of_gradient(facts, use, operand)
    else:
        claimed = low_lanes if short in _ACCUMULATED and differentiated else claimed_lanes
        lanes = claimed(facts, use, operand, lambda _, bit: bool(bit & failing))
    if what is _SQUARES and short != "mean" and "dim" not in use.arguments:
        what = "a sum over everything overflows beyond 65504"
    if short in _ACCUMULATED and not differentiated and _may_be_a_count(operand):
        lanes = doubted(lanes, doubts.MAY_COUNT)
    return _Prone(use, operand, surest(lanes), what) if lanes else None


def _lanes_of_gradient(facts: FileFacts, use: Use, operand: Operand) -> dict[int, Standing]:
    """The scenarios of low precision in which a gradient is float16, as its parameter is."""
    return {
        number: ASSUMED
        for number, lane in enumerate(operand.value.dtypes)
        if lane.mask == _FLOAT16 and use.live >> number & 1 and facts.scenarios[number] != CONTROL
    }


def _may_be_a_count(operand: Operand) -> bool:
    """Whether a tensor has the dtype of what a caller passes, and nothing says that this is floating: a mask, lengths.

    What an autograd Function gets is.
    """
    return operand.value.trait is None and any(lane.symbol is not None for lane in operand.value.dtypes)


def _hazard(short: str, trait: Trait | None) -> tuple[int, str] | None:
    """The dtypes in which an operation goes wrong on such values, and what happens."""
    if short in _SUMS and trait is Trait.SQUARE:
        return _FLOAT16, _SQUARES
    if (short in _SUMS and trait in _GRADIENT_SQUARES) or (short in _NORMS and trait in _GRADIENTS):
        return _FLOAT16, "gradients times a loss scale overflow it"
    if short in LOGARITHMS and trait in (Trait.SHARE, Trait.REST):
        if trait is Trait.SHARE:
            return _FLOAT16, "what is below 3e-8 is zero there, and its logarithm infinite"
        return _EITHER, "near 1 that is zero, and its logarithm infinite"
    if short in _EXPONENTIALS and trait is Trait.DECAY:
        return _EITHER, "the outer exponential multiplies its rounding"
    if short in _EXPONENTIALS and trait not in _SMALL:
        return _FLOAT16, "it overflows beyond 11"
    if short in _ACCUMULATED:
        return _EITHER, "rounding adds up along the sum" if short != "cumprod" else "rounding adds up along the product"
    if short == _PRODUCT:
        return _EITHER, "rounding adds up along the product"
    if short == _SHARES:
        return _EITHER, "the shares that decide are rounded"
    return (_EITHER, "it is rounded") if short in _LOGARITHMS_OF_SHARES else None


def _judged(prone: _Prone, surroundings: Surroundings) -> _Prone:
    """With what depends on the numbers: whether anything is lost that matters.

    The dtype alone proves that sums are rounded, not that squares are so large. Where nothing is added below the root,
    small squares are lost as well: the root of silence is zero.
    """
    held = tuple(_doubts(prone, surroundings))
    if held or prone.what is not _SQUARES:
        return replace(prone, lanes=doubted(prone.lanes, *held))
    bare = isinstance(prone.use.node, ast.expr) and is_rooted(surroundings, prone.use.node, below=True)
    what = _BARE_SQUARES if bare else _SQUARES
    return replace(prone, lanes=doubted(prone.lanes, doubts.SQUARES_MAY_BE_SMALL), what=what)


def _doubts(prone: _Prone, surroundings: Surroundings) -> Iterator[Doubt]:
    """Why the hazard may not be there for the usual numbers: norms, running sums, decays, shares that choose experts.

    Norms of gradients are so large only where a loss scale is kept on them, which no ``GradScaler`` does to float16
    parameters. Their squares overflow beyond 256 without one, in the buckets of a communication hook, which may be
    compressed, and for parameters of float16, which hardly anyone trains. A sum of squares whose bare root is taken is
    the length of a vector, of an embedding say, which stays far below 256; layers that normalise add an epsilon.
    """
    short, trait, use = short_name(prone.use.op).rstrip("_"), prone.operand.value.trait, prone.use
    if trait in (*_GRADIENTS, *_GRADIENT_SQUARES):
        if trait is not Trait.BUCKET_SQUARE:
            yield doubts.NEEDS_LOSS_SCALE
    elif short in _SUMS:
        yield from _doubts_of_squares(prone, short, surroundings)
    elif short == _SHARES:
        if not isinstance(use.node, ast.expr) or not decides(surroundings, use.node):
            yield doubts.NO_CHOICE
    elif short in _ACCUMULATED:
        if _is_made_of_ones(surroundings, prone.operand.node):
            yield doubts.SUM_OF_ONES
    elif short not in LOGARITHMS and not (short in _EXPONENTIALS and trait is Trait.DECAY):
        yield doubts.VALUES_DECIDE


def _doubts_of_squares(prone: _Prone, short: str, surroundings: Surroundings) -> Iterator[Doubt]:
    node, operand = prone.use.node, prone.operand.node
    if not isinstance(node, ast.expr) or "dim" not in prone.use.arguments or not is_rooted(surroundings, node):
        yield doubts.NO_ROOT
    elif short != "mean" and is_rooted(surroundings, node, bare=True):
        yield doubts.A_LENGTH
    if _is_distance(surroundings, operand):
        yield doubts.A_DISTANCE
    if is_modulus(surroundings, operand):
        yield doubts.OF_COMPLEX


def _is_made_of_ones(surroundings: Surroundings, node: ast.expr | None) -> bool:
    """Whether a tensor is made of ones: their sums count, exactly as long as they are few."""
    made = surroundings.only_value(node) if isinstance(node, ast.Name) else node
    return isinstance(made, ast.Call) and surroundings.called(made) in ("ones", "ones_like", "new_ones")


def _is_distance(surroundings: Surroundings, node: ast.expr | None) -> bool:
    """Whether what is squared is the difference of two rows of a tensor: of positions, not from a mean."""
    differences = [
        part for part in _squared(surroundings, node) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub)
    ]
    return any(isinstance(part.left, ast.Subscript) and isinstance(part.right, ast.Subscript) for part in differences)


def _given_dtype(use: Use) -> bool:
    dtype = use.arguments.get("dtype")
    return dtype is not None and not (isinstance(dtype, Const) and dtype.value is None)


def _suspect(facts: FileFacts, found: list[_Prone]) -> Suspect:
    worst, lanes, standing = strongest(found)
    span = facts.span(worst.use.node)
    short = short_name(worst.use.op)
    given = f"{short} of {dtype_name(worst.operand, lanes)} {quoted(worst.operand.node, 'tensor')}"
    computed = "" if short.rstrip("_") in LOGARITHMS else " stays in 16 bit"
    return Suspect(
        span=span,
        node=span,
        message=f"{given}{computed}: {worst.what}",
        scenarios=facts.names(lanes),
        standing=standing,
        causes=causes_of(facts, worst.operand, worst.lanes),
        data=worst,
    )


def _fix(node: cst.Call, prone: _Prone, visit: Visit) -> Fix | None:
    short = short_name(prone.use.op).rstrip("_")
    if short_name(prone.use.op).endswith("_") or short in LOGARITHMS:
        return None
    edits: list[Edit] = []
    if short in _SUMS:
        for part in _squared(Surroundings.of(visit.facts.source.tree), prone.operand.node):
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


def _squared(surroundings: Surroundings, node: ast.expr | None) -> tuple[ast.expr, ...]:
    """What an expression squares, as often as it stands there; nothing where that is elsewhere."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right) if isinstance(node.op, ast.Mult) else (node.left,)
    if isinstance(node, ast.Call) and surroundings.called(node) in ("pow", "square"):
        of = surroundings.subject(node)
        return (of,) if of is not None else ()
    return ()
