"""AMP604: a nested legacy ``autocast()`` whose default dtype is not the one of the region around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.default_dtype_regions import begins_training, default_dtype_regions
from amplint.claims.legacy_names import DEPRECATED_SINCE, LEGACY
from amplint.claims.surroundings import Surroundings
from amplint.rule import Applicability, Example, Rule, Severity, Standing, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class NestedDefaultDtype(Rule):
    """A nested `autocast()` of `torch.cuda.amp` or `torch.cpu.amp` sets its own default dtype, not the one around it.

    What it does
    ------------
    Reports `torch.cuda.amp.autocast()` and `torch.cpu.amp.autocast()` without `dtype` inside another region or inside
    a module's method, in the scenarios where their default (float16 on CUDA, bfloat16 on CPU) differs from the dtype
    that the program runs in: that of the region around, and where autocast is off, that of the surrounding program.
    A region nested in one that switches autocast off counts, since what it hands out meets the rest of the model; so
    does one in a model held in 16 bit without autocast, which it switches on. Where autocast is off around it and the
    model is float32, opening a region is the code's own choice. Possible only: a region of a method that takes the
    training step itself, backward pass and optimizer, unless another region is around it there.

    Why it is bad
    -------------
    `torch.autocast("cuda")` inherits the dtype of the region around it. The legacy names do not: their signature says
    float16 (bfloat16 on CPU), so under bfloat16 training the block computes in float16, overflows at 65504, and hands
    out tensors that disagree with every other one.

    How it shows
    ------------
    ```text
    RuntimeError: Unexpected floating ScalarType in at::autocast::prioritize
    RuntimeError: expected m1 and m2 to have the same dtype, but got: c10::Half != c10::BFloat16
    ```
    or inf in the results, or no sign at all.

    Example
    -------
    ```python
    class Quantizer(nn.Module):
        def forward(self, x):
            with torch.cuda.amp.autocast():
                return self.project(x)
    ```
    Use instead:
    ```python
    class Quantizer(nn.Module):
        def forward(self, x):
            with torch.amp.autocast("cuda"):
                return self.project(x)
    ```

    Fix safety
    ----------
    Unsafe: the region's dtype changes. The fix passes the dtype that is set around the region, and is offered from
    torch 2.4 on where autocast is on there. Inside a region that switches autocast off there is none: a legacy
    `autocast(enabled=False)` has overwritten the dtype by then, so it must be read before. AMP601 reports the same call
    as deprecated; its rewrite keeps the old dtype and writes it out.
    """

    code: ClassVar[str] = "AMP604"
    name: ClassVar[str] = "nested-default-dtype"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("autocast",)
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)

    def forward(self, x):
        left = self.left(x)
        with torch.cpu.amp.autocast():  # expect
            right = self.right(x)
        return torch.cat([left, right])  # expect AMP104


def reproduce():
    with torch.autocast("cpu", dtype=torch.float16):
        Block()(torch.ones(2, 4))
""",
            scenario="autocast-fp16",
            device="cpu",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cuda"):
            left = self.left(x)
        with torch.cuda.amp.autocast(enabled=False):
            scale = x.float().exp()
        return left, scale


def train(block, x):
    with torch.cuda.amp.autocast():
        return block(x)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for call, name, scenarios, inherit in default_dtype_regions(facts):
            legacy = LEGACY[name]
            place = "the region around it" if inherit else "the program around it"
            message = f"{name}() computes in {legacy.default_dtype} whatever the dtype of {place}"
            span = facts.source.span(call)
            standing = Standing(forced=inherit)
            if begins_training(call, facts, Surroundings.of(facts.source.tree)):
                standing = standing.doubted(doubts.BEGINS_TRAINING)
            yield Suspect(span, span, message, scenarios, standing, data=(legacy.device, inherit))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        device, inherit = suspect.data
        if not inherit or visit.facts.oldest_torch < DEPRECATED_SINCE:
            visit.report(suspect)
            return
        torch, edits = visit.import_name("torch")
        argument = visit.add_argument(node, f'dtype={torch}.get_autocast_dtype("{device}")')
        fix = visit.fix(Applicability.UNSAFE, "Inherit the dtype of the region around", *edits, argument)
        visit.report(suspect, fix)
