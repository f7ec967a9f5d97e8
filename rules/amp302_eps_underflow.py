"""AMP302: an epsilon that float16 does not bear: it is zero, or the gradient beside it is infinite."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.away_from_zero import has_floor, sums_whole
from amplint.claims.complex_parts import is_modulus
from amplint.claims.idle_epsilons import guards_gradients_alone, idle_doubts, is_of_trainer, is_overridden, sums_shares
from amplint.claims.learned import is_learned
from amplint.claims.low_precision import (
    by_node,
    causes_of,
    claimed_lanes,
    doubted,
    dtype_expression,
    dtype_name,
    quoted,
    refused_above,
    strongest,
    surest,
)
from amplint.claims.on_host import is_on_host
from amplint.claims.operands import short_name
from amplint.claims.surroundings import Surroundings
from amplint.finding import Applicability, Severity
from amplint.infer.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from amplint.infer.values import Limit, Trait
from amplint.judge import doubts
from amplint.judge.certainty import holding
from amplint.rewriting.nodes import find_expression
from amplint.rule import Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.finding import Doubt, Fix
    from amplint.infer.facts import FileFacts, Operand, Use
    from amplint.judge.certainty import Standing
    from amplint.visit import Visit

_ROUNDS_TO_ZERO = 2.0**-25
"""float16's smallest number is 2**-24: half of it and less is rounded to zero."""

_FINITE_CUBE = 65504.0 ** (-2 / 3)
"""The gradient of ``rsqrt`` is a multiple of its cube, which float16 holds up to 65504."""

_GUARDS = {
    "add": ("other", "input"),
    "clamp": ("min",),
    "clip": ("min",),
    "clamp_min": ("min",),
    "normalize": ("eps",),
    "cosine_similarity": ("eps",),
    "logit": ("eps",),
}
"""By which parameter operations get an epsilon."""

_USUAL = {"normalize": 1e-12, "cosine_similarity": 1e-8}
"""The epsilons that torch takes where none is passed (torch/nn/functional.py)."""

_VANISHING = ("tiny", "smallest_normal", "smallest_subnormal")
_WIDE = BFLOAT16 | FLOAT32 | FLOAT64


@dataclass(frozen=True, slots=True)
class _Vanishing:
    """An epsilon that float16 does not bear: the use, the parameter it is passed by, and the scenarios.

    ``cubed``: it is not zero, but the gradient of the inverse square root that it bounds is infinite.
    """

    use: Use
    parameter: str
    lanes: dict[int, Standing]
    cubed: bool = False

    @property
    def operand(self) -> Operand:
        return self.use.operands[0]

    @property
    def constant(self) -> ast.expr | None:
        """The expression of the epsilon."""
        return self.use.nodes.get(self.parameter)


class EpsUnderflow(Rule):
    """An epsilon such as 1e-8 is zero in float16, or 1e-5 too small for the gradient of an inverse square root there.

    What it does
    ------------
    Reports positive numbers below 3e-8 that are added to a float16 tensor or passed to `clamp`, `F.normalize`,
    `F.cosine_similarity` or `logit` of one. Numbers are followed through names, attributes and defaults, and
    `torch.finfo(torch.float32).tiny` counts as what it is. Under `rsqrt` or a power of -0.5, without autocast, numbers
    below 6e-4 beside a variance or another number that is not negative are reported as well.

    With `--pedantic` also where no zero is to be expected, or none that is divided by: beside sums of the largest of
    shares, added up in any way, or of what a configured activation gives, beside parameters and buffers, which do not
    depend on the data, beside what a test lets through only where it is large, beside sums of all squares of a tensor
    and what a number is added to before it is filtered, beside the modulus of what a caller passes as real and
    imaginary parts, and beside what an option makes an exponential that nothing in the file turns off; in what is only
    multiplied, an argument of `atan2` or asked for the places of its largest numbers; behind a constant that float16
    refuses; where torch's own default epsilon is passed; without autocast under a root that nothing divides by, whose
    gradient alone is infinite, and in trainers; and under autocast beside what lies in the host's memory unless a
    caller names a device, or is made on none.

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
    zero, and under an inverse square root 1e-3. In float32 and bfloat16 nothing changes.
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
        f = p / torch.where(p == 0, torch.ones_like(p), p + self.eps)
        g = p * (1 / 47900160 + p * 1e-3)
        h = (p.var(-1) + 1e-3).rsqrt(), (p.float().var(-1) + 1e-5).rsqrt(), p / (p.var(-1, keepdim=True) + 1e-5).sqrt()
        return a, b, c, d, e, f, g, h


def reproduce():
    Entropy()(torch.randn(2, 4))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        if not any(use.numbers for use in facts.uses):
            return
        surroundings = Surroundings.of(facts.source.tree)
        for uses in by_node(facts.uses):
            found = [vanishing for use in uses if (vanishing := _vanishing(facts, use)) is not None]
            found = [_judged(facts, surroundings, one) for one in found]
            if all(map(_is_dropped, found)) and _is_inverse_root(surroundings, uses[0].node):
                found = [cubed for use in uses if (cubed := _cubed(facts, use)) is not None] or found
            if found:
                yield _suspect(facts, found)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _vanishing(facts: FileFacts, use: Use) -> _Vanishing | None:
    for parameter in _GUARDS.get(short_name(use.op).rstrip("_"), ()):
        number = use.numbers.get(parameter)
        if number is None or not use.operands:
            continue
        lanes = claimed_lanes(facts, use, use.operands[0], partial(_vanishes, number))
        if lanes:
            return _Vanishing(use, parameter, surest(lanes))
    return None


def _is_dropped(vanishing: _Vanishing) -> bool:
    return all(standing.certainty is None for standing in vanishing.lanes.values())


def _judged(facts: FileFacts, surroundings: Surroundings, vanishing: _Vanishing) -> _Vanishing:
    held = tuple(_doubts(facts, surroundings, vanishing))
    return replace(vanishing, lanes=doubted(vanishing.lanes, *held))


def _doubts(facts: FileFacts, surroundings: Surroundings, vanishing: _Vanishing) -> Iterator[Doubt]:
    """Why no zero may come there, or none that matters."""
    tree, use, operand = facts.source.tree, vanishing.use, vanishing.operand.node
    lowered = [facts.scenarios[number].autocast is not None for number in vanishing.lanes]
    proven = any(standing.proven for standing in vanishing.lanes.values())
    yield from holding(
        {
            doubts.NO_GUARD: _is_no_guard(surroundings, use.node),
            doubts.SHARES_SUMMED: sums_shares(surroundings, operand),
            doubts.OVERRIDDEN: is_overridden(tree, surroundings, vanishing.constant),
        }
    )
    yield from idle_doubts(tree, surroundings, use.node, operand)
    if is_learned(tree, surroundings, operand):
        yield doubts.LEARNED
    if has_floor(surroundings, operand):
        yield doubts.FLOOR_BEFORE
    if sums_whole(surroundings, operand):
        yield doubts.SUMS_WHOLE
    if not any(lowered) and guards_gradients_alone(tree, surroundings, use.node):
        yield doubts.GRADIENT_ALONE
    if not any(lowered) and is_of_trainer(surroundings, use.node):
        yield doubts.TRAINER
    if not proven and is_modulus(surroundings, operand):
        yield doubts.OF_COMPLEX
    if all(lowered) and facts.device != "cpu" and _is_usually_on_host(surroundings, vanishing):
        yield doubts.HOST_BY_DEFAULT
    if use.numbers[vanishing.parameter] == _USUAL.get(short_name(use.op)):
        yield doubts.TORCHS_OWN
    if refused_above(facts, surroundings, use.node) >= vanishing.lanes.keys():
        yield doubts.CONSTANT_RAISES


def _is_usually_on_host(surroundings: Surroundings, vanishing: _Vanishing) -> bool:
    """Whether the tensor lies where another device's autocast does not act, unless a caller names a device."""
    function = surroundings.function(vanishing.use.node)
    return is_on_host(surroundings, function, vanishing.operand.node, by_default=True)


def _cubed(facts: FileFacts, use: Use) -> _Vanishing | None:
    """A sum whose inverse square root, cubed, float16 does not hold where the tensor is zero, which it may be.

    Autocast computes the root and its gradient in float32.
    """
    if short_name(use.op) != "add" or not use.operands or use.operands[0].value.trait is not Trait.POSITIVE:
        return None
    for parameter in _GUARDS["add"]:
        number = use.numbers.get(parameter)
        if isinstance(number, float) and 0 < number < _FINITE_CUBE:
            lanes = claimed_lanes(facts, use, use.operands[0], lambda _, bit: bit == FLOAT16)
            lanes = {n: standing for n, standing in lanes.items() if facts.scenarios[n].autocast is None}
            return _Vanishing(use, parameter, surest(lanes), cubed=True) if lanes else None
    return None


def _is_inverse_root(surroundings: Surroundings, node: ast.expr | ast.stmt) -> bool:
    """Whether a sum is the operand of ``rsqrt`` or of a power of -0.5."""
    parent = surroundings.parent(node)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Pow) and parent.left is node and _is_minus_half(parent.right)
    if isinstance(parent, ast.Attribute):
        call = surroundings.parent(parent)
        if parent.attr == "pow" and isinstance(call, ast.Call) and call.args:
            return _is_minus_half(call.args[0])
        return parent.attr == "rsqrt"
    if isinstance(parent, ast.Call) and node in parent.args:
        name = surroundings.called(parent)
        return name == "rsqrt" or (name == "pow" and len(parent.args) > 1 and _is_minus_half(parent.args[1]))
    return False


def _is_minus_half(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant) and node.operand.value == 0.5


def _is_no_guard(surroundings: Surroundings, node: ast.expr | ast.stmt) -> bool:
    """Whether a sum is multiplied (a coefficient), or chosen by ``torch.where`` only where it is not zero."""
    parent = surroundings.parent(node)
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(parent, ast.Call):
        return surroundings.called(parent) == "where"
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult)


def _vanishes(number: float | Limit, lane: int, bit: int) -> bool:
    """Whether a dtype is float16, and rounds a positive number to zero."""
    if bit != FLOAT16:
        return False
    if not isinstance(number, Limit):
        return 0 < number <= _ROUNDS_TO_ZERO
    of = number.dtypes[lane]
    wide = of.known and not of.mask & ~_WIDE
    return wide and number.name in _VANISHING and not number.negated


def _suspect(facts: FileFacts, found: list[_Vanishing]) -> Suspect:
    worst, lanes, standing = strongest(found)
    span = facts.span(worst.use.node)
    number = worst.use.numbers[worst.parameter]
    shown = quoted(worst.constant, "the epsilon")
    if not isinstance(number, Limit) and shown != f"`{number}`":
        shown = f"{shown} ({number:g})"
    dtype, tensor = dtype_name(worst.operand, lanes), quoted(worst.operand.node, "the tensor")
    message = f"{shown} rounds to 0 in {dtype}, so {tensor} can still be 0"
    if worst.cubed:
        message = f"{shown} is too small beside {dtype} {tensor}: where that is 0, the root's gradient is infinite"
    return Suspect(
        span=span,
        node=span,
        message=message,
        scenarios=facts.names(lanes),
        standing=standing,
        causes=causes_of(facts, worst.operand, worst.lanes),
        data=worst,
    )


def _fix(node: cst.CSTNode, vanishing: _Vanishing, visit: Visit) -> Fix | None:
    """The epsilon, or float16's smallest normal number where that is larger; under a root 1e-3 in float16."""
    constant, dtype = vanishing.constant, dtype_expression(vanishing.use, vanishing.operand)
    found = find_expression(visit, node, constant) if constant is not None and dtype is not None else None
    if found is None:
        return None
    if vanishing.cubed:
        float16, imports = visit.import_name("torch", "float16")
        text = f"max({visit.code(found)}, 1e-3 if {dtype} == {float16} else 0.0)"
    else:
        finfo, imports = visit.import_name("torch", "finfo")
        text = f"max({visit.code(found)}, {finfo}({dtype}).tiny)"
    return visit.fix(Applicability.UNSAFE, "Use an epsilon that the dtype holds", *imports, visit.replace(found, text))
