"""AMP306: positions that low precision cannot count."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.low_precision import (
    by_node,
    causes_of,
    claimed_lanes,
    doubted,
    dtype_name,
    quoted,
    strongest,
    surest,
)
from amplint.claims.operands import short_name
from amplint.claims.surroundings import Surroundings
from amplint.finding import Severity
from amplint.infer.dtypes import LOW
from amplint.infer.values import Trait
from amplint.judge import doubts
from amplint.rule import Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.infer.facts import FileFacts, Operand, Use
    from amplint.judge.certainty import Standing

_PRODUCTS = frozenset(("einsum", "outer", "ger", "matmul", "mm", "bmm", "mul", "multiply"))
_RATES = (Trait.EXPONENTIAL, Trait.DECAY)
# What is computed in this file is known by its trait. The names are for frequencies that come in as an argument or from
# another file, and are the ones that the papers on rotary embeddings (theta, inv_freq) and ALiBi (slopes) gave them.
_TURNS = re.compile(r"(sin|cos|polar|sinc|exp)_?$")
_EXPONENTIAL = re.compile(r"exp2?_?$")


@dataclass(frozen=True, slots=True)
class _Rounded:
    """A product with positions, and in which scenarios these are low precision.

    ``exponents``: what counts up are frequencies, and the product is what they are the exponentials of.
    """

    use: Use
    operand: Operand
    lanes: dict[int, Standing]
    exponents: bool = False


class LowPrecisionPositions(Rule):
    """Positions are multiplied with frequencies or slopes in low precision, which cannot count them.

    What it does
    ------------
    Reports products (`einsum`, `outer`, `matmul`, `*`) of two tensors one of which counts up from `torch.arange` to an
    end that is not small, where that one is float16 or bfloat16: because autocast lowers the product, or because it was
    made or cast so. Rotary embeddings, ALiBi and sinusoids are such products: the other tensor holds frequencies or
    slopes, or the sine is taken of the product. Averages over bins and linear blends are not. Positions cast to the
    dtype of a buffer are merely possible there: a buffer of frequencies is often kept in float32 when a model is
    converted. Where the exponential of a count times a number is taken, it is the frequencies that are counted, exactly
    as they are few: what is reported is that their exponents are rounded, and no more than likely.

    Why it is bad
    -------------
    bfloat16 counts exactly to 256, float16 to 2048. Beyond, neighbouring positions become one, and their angles are off
    by whole radians: a model that is right on short inputs gets worse on long ones, without an error. Autocast lowers
    `einsum` and `matmul` of float32 operands as well. Rounded exponents make frequencies that are off by up to 3% in
    bfloat16, and the angle of a position by that part of itself.

    How it shows
    ------------
    Only as quality that falls with the length of the input.

    Example
    -------
    ```python
    angles = torch.einsum("i,j->ij", positions, self.inv_freq)  # bfloat16 under autocast
    ```
    Use instead:
    ```python
    with torch.autocast(positions.device.type, enabled=False):
        angles = torch.einsum("i,j->ij", positions.float(), self.inv_freq.float())
    ```

    Fix safety
    ----------
    There is no automatic fix: the product needs a region with autocast off, and what the positions are cast to before
    is often the caller's. Multiply in float32, and cast the sines and cosines, not the angles.
    """

    code: ClassVar[str] = "AMP306"
    name: ClassVar[str] = "low-precision-positions"
    severity: ClassVar[Severity] = Severity.WARNING
    tokens: ClassVar[tuple[str, ...]] = ("arange",)
    context: ClassVar[tuple[str, ...]] = ("torch",)

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, x: torch.Tensor):
        positions = torch.arange(x.shape[1], device=x.device).type_as(self.inv_freq)
        angles = torch.einsum("i,j->ij", positions, self.inv_freq)  # expect
        return angles.float().cos()


def reproduce():
    rotary, x = Rotary(8), torch.randn(1, 400, 8)
    expected = rotary(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        worst = (rotary(x) - expected).abs().max()
    if worst > 0.1:
        raise RuntimeError(f"cosines are off by {worst:.2f}")
""",
            scenario="autocast-bf16",
            emulated=True,
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim)))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor):
        positions = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            angles = torch.einsum("i,j->ij", positions, self.inv_freq.float())
        few = torch.arange(16, device=x.device, dtype=x.dtype)[:, None] * torch.ones_like(x[0, 0])
        return angles.cos().to(x.dtype), few, positions[:, None] * self.inv_freq.float(), self.proj(x)


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Rotary(8)(torch.randn(1, 400, 8))
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        around: Surroundings | None = None
        for uses in by_node(facts.uses):
            found = [rounded for use in uses if (rounded := _rounded(facts, use)) is not None]
            if not found:
                continue
            around = around or Surroundings.of(facts.source.tree)
            suspect = _suspect(facts, [_told_apart(rounded, around) for rounded in found])
            angles = any(_are_angles(rounded.use, around) for rounded in found)
            yield suspect if angles else suspect.doubted(doubts.NOT_POSITIONS)


def _rounded(facts: FileFacts, use: Use) -> _Rounded | None:
    if short_name(use.op).rstrip("_") not in _PRODUCTS or len(use.operands) < 2:
        return None
    counting = [operand for operand in use.operands if operand.value.trait is Trait.COUNT]
    if len(counting) != 1:
        return None
    lanes = claimed_lanes(facts, use, counting[0], lambda _, bit: bool(bit & LOW))
    for number, standing in lanes.items():
        if standing.proven and _follows_module(facts, counting[0], number):
            lanes[number] = standing.doubted(doubts.BUFFER_KEPT_WIDE)
    return _Rounded(use, counting[0], surest(lanes)) if lanes else None


def _are_angles(use: Use, around: Surroundings) -> bool:
    """Whether the product is of positions, not of weights that happen to count up: it needs their exact number.

    It is an outer product, or the other operand is computed as frequencies and slopes are, or sines or cosines are
    taken of it. What probabilities weigh is an average.
    """
    name = short_name(use.op).rstrip("_")
    others = [operand for operand in use.operands if operand.value.trait is not Trait.COUNT]
    if any(operand.value.trait is Trait.SHARE for operand in others):
        return False
    if name in ("outer", "ger") or any(operand.value.trait in _RATES for operand in others):
        return True
    if name == "einsum" and any(map(_is_outer, use.nodes.values())):
        return True
    return _turned(use.node, around)


def _told_apart(rounded: _Rounded, around: Surroundings) -> _Rounded:
    """Whether it is frequencies that count up, not positions: the exponential is taken of the count times a number.

    Few are counted, exactly, and the product is rounded; how much that is to the angles, the positions decide.
    """
    use = rounded.use
    others = [operand for operand in use.operands if operand.value.trait is not Trait.COUNT]
    call = around.parent(use.node)
    if isinstance(call, ast.Attribute):
        call = around.parent(call)
    if (
        not isinstance(call, ast.Call)
        or not _EXPONENTIAL.match(around.called(call))
        or any(o.value.dim != 0 for o in others)
    ):
        return rounded
    return replace(rounded, lanes=doubted(rounded.lanes, doubts.FREQUENCIES), exponents=True)


def _is_outer(node: ast.expr) -> bool:
    """An equation that sums over nothing and multiplies every item with every other."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or "->" not in node.value:
        return False
    given, _, result = node.value.replace(" ", "").partition("->")
    letters = given.replace(",", "").replace(".", "")
    return len(set(letters)) == len(letters) and set(letters) == set(result.replace(".", ""))


def _turned(node: ast.expr | ast.stmt, around: Surroundings) -> bool:
    """Whether a sine or cosine is taken, in the same function, of an expression or of what is computed from it."""
    function = around.function(node)
    if function is None:
        return False
    reached: set[str] = set()

    def holds(tree: ast.AST) -> bool:
        return any(n is node or (isinstance(n, ast.Name) and n.id in reached) for n in ast.walk(tree))

    for statement in [n for n in ast.walk(function) if isinstance(n, (ast.Assign, ast.AugAssign))]:
        if holds(statement.value):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            reached |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)} - {"self"}
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    return any(_TURNS.match(around.called(call)) and holds(call) for call in calls)


def _follows_module(facts: FileFacts, operand: Operand, lane: int) -> bool:
    """Whether positions are low precision only because a buffer is, which may have been kept from conversion."""
    return facts.scenarios[lane].autocast is None and not operand.value.explicit


def _suspect(facts: FileFacts, found: list[_Rounded]) -> Suspect:
    worst, lanes, standing = strongest(found)
    span = facts.span(worst.use.node)
    dtype = dtype_name(worst.operand, lanes)
    given = quoted(worst.operand.node, "positions")
    end = "2048" if dtype == "float16" else "256"
    message = f"{short_name(worst.use.op)} multiplies {given} in {dtype}, which rounds positions above {end}"
    if worst.exponents:
        message = (
            f"{short_name(worst.use.op)} of {dtype} {given} rounds the exponents of frequencies, and angles with them"
        )
    return Suspect(
        span=span,
        node=span,
        message=message,
        scenarios=facts.names(lanes),
        standing=standing,
        causes=causes_of(facts, worst.operand, worst.lanes),
        data=worst,
    )
