"""AMP301: a constant that half precision cannot hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.low_precision import causes_of, dtype_expression, dtype_name, is_floating, quoted, spelled_number
from amplint.claims.operands import short_name
from amplint.claims.overflowing_constants import Overflow, overflows
from amplint.claims.surroundings import Surroundings
from amplint.rewriting.nodes import find_expression
from amplint.rule import TENSOR_CODE, Applicability, Example, Rule, Severity, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit


class MaskConstantOverflow(Rule):
    """A constant such as -1e9 goes into a tensor whose dtype cannot hold it.

    What it does
    ------------
    Reports Python numbers beyond the largest of a float16 or bfloat16 tensor that they are put into: by `masked_fill`,
    `fill_`, `full`, `new_full`, `pad` and the like, by `torch.where`, `x[...] = value` and `torch.tensor`; with
    `--device cpu` by `clamp` and `hardtanh` too, whose bounds CUDA reads in float32.
    Numbers are followed through names, attributes, defaults, arithmetic and 0-dim tensors; `torch.finfo(dtype)` counts
    with the dtype that it is of, so that `finfo(torch.float32).min` overflows in bfloat16 too. A factor of
    `torch.ones_like(x)` is what becomes of the product. Possible only: what becomes infinite without an error.

    Why it is bad
    -------------
    float16 ends at 65504. Most of these operations refuse a larger number. The others make it infinite without a word:
    a row that is masked from end to end then is NaN after softmax, where a large finite number gave equal weights.

    How it shows
    ------------
    ```text
    RuntimeError: value cannot be converted to type at::Half without overflow: -1e+09
    ```

    Example
    -------
    ```python
    scores = scores.masked_fill(mask, -1e9)  # float16 under autocast
    ```
    Use instead:
    ```python
    scores = scores.masked_fill(mask, max(-1e9, torch.finfo(scores.dtype).min))
    ```

    Fix safety
    ----------
    `max(-1e9, torch.finfo(x.dtype).min)` is -1e9 wherever that fits, so the fix is safe where x is known to be floating
    and the constant is known. It is unsafe where a caller may pass another number (-inf, which it would make finite),
    where x may hold integers, and where the number became -inf without an error before.
    """

    code: ClassVar[str] = "AMP301"
    name: ClassVar[str] = "mask-constant-overflow"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = (
        *("masked_fill", "fill_", "full", "index_fill", "scatter", "clamp", "clip", "pad(", "threshold", "hardtanh"),
        *("where(", "] =", "]=", "tensor(", "ones(", "ones_like("),
    )
    context: ClassVar[tuple[str, ...]] = TENSOR_CODE
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        scores = self.query(x) @ self.key(x).transpose(-2, -1)
        scores = scores.masked_fill(mask, -1e9)  # expect
        return scores.softmax(-1)


def reproduce():
    with torch.autocast("cpu", dtype=torch.float16):
        Attention()(torch.randn(2, 4, 8), torch.ones(4, 4, dtype=torch.bool).triu(1))
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, mask_value=-1e9):
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.mask_value = mask_value

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        scores = self.query(x) @ x.transpose(-2, -1)
        lowest = torch.finfo(scores.dtype).min
        a = scores.masked_fill(mask, lowest)
        b = scores.masked_fill(mask, float("-inf"))
        c = scores.masked_fill(mask, -1e4)
        d = scores.masked_fill(mask, max(self.mask_value, lowest))
        e = scores.float().masked_fill(mask, self.mask_value)
        f = scores.masked_fill(mask, -1e4 if scores.dtype == torch.float16 else -1e9)
        g = torch.full_like(scores, -torch.finfo(scores.dtype).max)
        return a, b, c, d, e, f, g, torch.zeros_like(mask, dtype=torch.int64).fill_(1_000_000)


def reproduce():
    with torch.autocast("cpu", dtype=torch.float16):
        Attention()(torch.randn(2, 4, 8), torch.ones(4, 4, dtype=torch.bool).triu(1))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for worst, lanes in overflows(facts):
            yield _suspect(facts, worst, lanes)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))

    def visit_Assign(self, node: cst.Assign, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _suspect(facts: FileFacts, worst: Overflow, lanes: list[int]) -> Suspect:
    span, standing = facts.span(worst.use.node), next(iter(worst.lanes.values()))
    return Suspect(
        span=span,
        node=span,
        message=_message(worst),
        scenarios=facts.names(lanes),
        standing=standing if worst.raises else standing.doubted(doubts.MASKS_ALL_THE_SAME),
        causes=causes_of(facts, worst.operand, worst.lanes),
        severity=Severity.ERROR if worst.raises else Severity.WARNING,
        data=worst,
    )


def _message(overflow: Overflow) -> str:
    number = overflow.use.numbers[overflow.parameter]
    dtype = dtype_name(overflow.operand, overflow.lanes)
    shown = spelled_number(overflow.constant, number, "a number")
    made = overflow.operand.name == "result"
    into = f"a {dtype} tensor" if made else f"{dtype} {quoted(overflow.operand.node, 'tensor')}"
    largest = "65504" if "float16" in dtype.split() else "3.39e38"
    if overflow.raises:
        return f"{short_name(overflow.use.op)} puts {shown} into {into}, which ends at {largest}: it raises"
    return f"{shown} becomes infinite in {into}, which ends at {largest}"


def _number_in(made: ast.expr, around: Surroundings) -> ast.expr | None:
    """The number of ``torch.tensor(-1e9)``, where it is written out there."""
    if not isinstance(made, ast.Call) or around.torch_name(made.func) not in ("torch.tensor", "torch.as_tensor"):
        return None
    number = made.args[0] if made.args else None
    digits = number.operand if isinstance(number, ast.UnaryOp) else number
    return number if isinstance(digits, ast.Constant) else None


def _fix(node: cst.CSTNode, overflow: Overflow, visit: Visit) -> Fix | None:
    """The constant within what the filled tensor's dtype can hold."""
    constant, dtype = overflow.constant, dtype_expression(overflow.use, overflow.operand)
    if overflow.in_tensor and constant is not None:
        constant = _number_in(constant, Surroundings.of(visit.facts.source.tree))
    if constant is None or dtype is None:
        return None
    found = find_expression(visit, node, constant)
    if found is None:
        return None
    function, limit = ("max", "min") if overflow.negative else ("min", "max")
    finfo, imports = visit.import_name("torch", "finfo")
    safe = overflow.raises and is_floating(overflow.operand) and overflow.settled
    return visit.fix(
        Applicability.SAFE if safe else Applicability.UNSAFE,
        "Keep the constant within the dtype's range",
        *imports,
        visit.replace(found, f"{function}({visit.code(found)}, {finfo}({dtype}).{limit})"),
    )
