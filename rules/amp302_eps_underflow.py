"""AMP302: an epsilon that is zero in float16."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Severity
from amplint.infer.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from amplint.infer.values import Limit
from amplint.rule import Example, Rule, Suspect

from ._disagreement import find_expression, short_name
from ._low_precision import (
    by_node,
    causes_of,
    claimed_lanes,
    dtype_expression,
    dtype_name,
    quoted,
    strongest,
    surest,
)
from ._surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.finding import Certainty, Fix
    from amplint.infer.facts import FileFacts, Operand, Use
    from amplint.visit import Visit

_ROUNDS_TO_ZERO = 2.0**-25
"""float16's smallest number is 2**-24: half of it and less is rounded to zero."""

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

_VANISHING = ("tiny", "smallest_normal", "smallest_subnormal")
_WIDE = BFLOAT16 | FLOAT32 | FLOAT64


@dataclass(frozen=True, slots=True)
class _Vanishing:
    """An epsilon that is zero in float16: the use, the parameter it is passed by, and the scenarios."""

    use: Use
    parameter: str
    lanes: dict[int, Certainty]

    @property
    def operand(self) -> Operand:
        return self.use.operands[0]

    @property
    def constant(self) -> ast.expr | None:
        """The expression of the epsilon."""
        return self.use.nodes.get(self.parameter)


class EpsUnderflow(Rule):
    """An epsilon such as 1e-8 is added to a float16 tensor, or bounds one, and is zero there.

    What it does
    ------------
    Reports positive numbers below 3e-8 that are added to a float16 tensor or passed to `clamp`, `F.normalize`,
    `F.cosine_similarity` or `logit` of one. Numbers are followed through names, attributes and defaults, and
    `torch.finfo(torch.float32).tiny` counts as what it is.

    Why it is bad
    -------------
    float16's smallest number is 6e-8. What the epsilon should keep from zero is zero all the same: the division gives
    inf or NaN, the logarithm -inf, and their gradients NaN. It takes a zero to show, so a short run may pass.
    bfloat16 holds such numbers.

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
    zero. In float32 and bfloat16 nothing changes.
    """

    code: ClassVar[str] = "AMP302"
    name: ClassVar[str] = "eps-underflow"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = ("e-", ".tiny", "smallest_", "0.00000")
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
        Example(
            """\
import torch
from torch import nn


def log(t, eps=1e-20):
    return t.clamp(min=eps).log()  # expect


class Entropy(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        shares = self.codes(x).relu()
        return -(shares * log(shares)).sum(-1)


def reproduce():
    module, x = Entropy(), torch.zeros(1, 4)
    nn.init.constant_(module.codes.bias, -1.0)
    assert module(x).isfinite().all()
    with torch.autocast("cpu", dtype=torch.float16):
        assert module(x).isfinite().all(), "0 * log(0)"
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
        return a, b, c, d, e, f, g


def reproduce():
    Entropy()(torch.randn(2, 4))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        if not any(use.numbers for use in facts.uses):
            return
        surroundings = Surroundings(facts.source.tree)
        for uses in by_node(facts.uses):
            found = [vanishing for use in uses if (vanishing := _vanishing(facts, use)) is not None]
            if found and not _is_no_guard(surroundings, uses[0].node):
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


def _is_no_guard(surroundings: Surroundings, node: ast.expr | ast.stmt) -> bool:
    """Whether a sum is multiplied (a coefficient), or chosen by ``torch.where`` only where it is not zero."""
    parent = surroundings.parent(node)
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr == "where"
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
    worst, lanes, certainty = strongest(found)
    span = facts.span(worst.use.node)
    number = worst.use.numbers[worst.parameter]
    shown = quoted(worst.constant, "the epsilon")
    if not isinstance(number, Limit) and shown != f"`{number}`":
        shown = f"{shown} ({number:g})"
    given = f"{dtype_name(worst.operand, lanes)} {quoted(worst.operand.node, 'tensor')}"
    return Suspect(
        span=span,
        node=span,
        message=f"{shown} is zero in {given}: it keeps nothing from zero",
        scenarios=facts.names(lanes),
        certainty=certainty,
        causes=causes_of(facts, worst.operand, worst.lanes),
        data=worst,
    )


def _fix(node: cst.CSTNode, vanishing: _Vanishing, visit: Visit) -> Fix | None:
    """The epsilon, or float16's smallest normal number where that is larger."""
    constant, dtype = vanishing.constant, dtype_expression(vanishing.use, vanishing.operand)
    found = find_expression(visit, node, constant) if constant is not None and dtype is not None else None
    if found is None:
        return None
    finfo, imports = visit.import_name("torch", "finfo")
    text = f"max({visit.code(found)}, {finfo}({dtype}).tiny)"
    return visit.fix(Applicability.UNSAFE, "Use an epsilon that the dtype holds", *imports, visit.replace(found, text))
