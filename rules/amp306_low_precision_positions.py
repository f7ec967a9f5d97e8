"""AMP306: positions that low precision cannot count."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.low_precision import causes_of, dtype_name, quoted, strongest
from amplint.claims.operands import short_name
from amplint.claims.regrown_tables import only_regrown
from amplint.claims.rounded_positions import Rounded, rounded_positions
from amplint.claims.surroundings import Surroundings
from amplint.rule import Example, Rule, Severity, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.rule import FileFacts


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
    as they are few: what is reported is that their exponents are rounded, and no more than likely. Where the other
    tensor may be anything, what counts up may be harmonics of positions, and what is reported is the rounded product.

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
        for found, angles in rounded_positions(facts):
            suspect = _suspect(facts, found)
            if not angles:
                suspect = suspect.doubted(doubts.NOT_POSITIONS)
            if only_regrown(found[0].use.node, Surroundings.of(facts.source.tree)):
                suspect = suspect.doubted(doubts.ONLY_OUTGROWN)
            yield suspect


def _suspect(facts: FileFacts, found: list[Rounded]) -> Suspect:
    worst, lanes, standing = strongest(found)
    span = facts.span(worst.use.node)
    dtype = dtype_name(worst.operand, lanes)
    given = quoted(worst.operand.node, "positions")
    end = "2048" if dtype == "float16" else "256"
    message = f"{short_name(worst.use.op)} multiplies {given} in {dtype}, which rounds positions above {end}"
    if worst.either:
        message = f"{short_name(worst.use.op)} of {dtype} {given} rounds the angles or exponents that it gives"
    elif worst.exponents:
        message = (
            f"{short_name(worst.use.op)} of {dtype} {given} rounds the exponents of the frequencies, and so all angles"
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
