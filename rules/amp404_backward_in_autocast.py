"""AMP404: the backward pass runs inside an autocast region."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.rule import (
    Applicability,
    Cause,
    Edit,
    Example,
    Gradients,
    Location,
    Rule,
    Severity,
    Span,
    Standing,
    Step,
    Suspect,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Moment, Visit

_TRAINS = (Step.OPTIMIZER_STEP, Step.SCALER_STEP, Step.UNSCALE)


class BackwardInAutocast(Rule):
    """A backward pass runs inside an autocast region, which is meant for the forward pass and the loss.

    What it does
    ------------
    Reports `loss.backward()`, `scaler.scale(loss).backward()`, `torch.autograd.backward` and the `backward` of
    Accelerate and Fabric where every path leads through an enabled autocast region, in the same function or around the
    call of a helper of the same file; of several in one region the first. Only in files that step an optimizer or scale
    a loss: a test of a kernel may take gradients wherever it wants to. `torch.autograd.grad` inside a
    region is left alone: penalties on gradients are computed there on purpose.

    Why it is bad
    -------------
    Autograd runs each gradient in the dtype of its forward operation. With autocast on, the matrix products of the
    backward pass are cast once more: what the forward pass kept in float32 on purpose, in a region with autocast off
    or for a parameter that must not overflow, has its gradient computed in 16 bit. In float16 that is inf from 65504
    on. torch's documentation advises against it.

    How it shows
    ------------
    No error. Gradients differ from those of the same loss taken outside, are inf in float16, and a custom Function
    whose backward lacks `custom_bwd` works only here.

    Example
    -------
    ```python
    with torch.autocast("cuda"):
        loss = criterion(model(x), target)
        scaler.scale(loss).backward()
    ```
    Use instead:
    ```python
    with torch.autocast("cuda"):
        loss = criterion(model(x), target)
    scaler.scale(loss).backward()
    ```

    Fix safety
    ----------
    Unsafe: gradients change in the operations named above. The fix moves the backward pass and all that follows it in
    the block behind the region; it is offered where the region is the only context of its `with` statement, and
    nothing that follows computes with the loss again.
    """

    code: ClassVar[str] = "AMP404"
    name: ClassVar[str] = "backward-in-autocast"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = (".backward(",)
    context: ClassVar[tuple[str, ...]] = ("autocast",)
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Head(nn.Module):
    \"\"\"Computes in float32, whatever is around it.\"\"\"

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((4, 4), 300.0))

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return x.float() @ self.weight.float()


def train_step(model, optimizer: torch.optim.Optimizer, x):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (300 * model(x)).sum()
        loss.backward()  # expect
    optimizer.step()


def reproduce():
    model, x = Head(), torch.ones(2, 4, requires_grad=True)
    train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), x)
    assert x.grad.isfinite().all(), "the gradient overflows in float16"
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def train_step(model, scaler: torch.amp.GradScaler, x, use_amp):
    with torch.autocast("cuda", dtype=torch.float16, enabled=use_amp):
        loss = model(x).float().mean()
        with torch.autocast("cuda", enabled=False):
            (loss * 0).backward(retain_graph=True)
    scaler.scale(loss).backward()


def train_float32(model, x):
    with torch.autocast("cuda", enabled=False):
        model(x).mean().backward()


class Reversible:
    def backward(self, y):
        return y


def run(block, x):
    with torch.autocast("cuda"):
        return Reversible().backward(x)


def penalty(model, x):
    with torch.autocast("cuda", dtype=torch.float16):
        score = model(x).sum()
        (gradient,) = torch.autograd.grad(score, x, create_graph=True)
        return gradient.float().norm()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = tuple(scenario.name for scenario in facts.scenarios if scenario.autocast)
        if not scenarios:
            return
        backward = facts.training.moments_of(Step.BACKWARD)
        scales = any(not {Gradients.PLAIN, Gradients.ENTRY}.issuperset(m.event.gradients) for m in backward)
        if not scales and not facts.training.moments_of(*_TRAINS):
            return
        spoken: set[tuple[int, int]] = set()
        for moment in backward:
            regions = [region for region in moment.regions if region is not None]
            if not regions or len(regions) < len(moment.regions):
                continue
            defect = (id(moment.event.scope), id(regions[0].node))
            if defect in spoken:
                continue
            spoken.add(defect)
            span = facts.span(moment.event.node)
            causes = tuple(
                dict.fromkeys(Cause(facts.path, facts.span(r.node), "autocast is on from here on") for r in regions)
            )
            message = "the backward pass runs inside autocast: end the region behind the loss"
            managed = moment.event.gradients == (Gradients.MANAGED,)
            standing = Standing(forced=not managed and all(region.certain for region in regions))
            yield Suspect(
                span,
                span,
                message,
                scenarios,
                standing,
                causes,
                data=(moment, {facts.span(region.node) for region in regions}),
            )

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        moment, regions = suspect.data
        visit.report(suspect, _dedented(node, moment, regions, visit))


def _dedented(node: cst.Call, moment: Moment, regions: set[Span], visit: Visit) -> Fix | None:
    """Move the backward pass, and what follows it, out of the ``with`` block that it stands in directly."""
    import libcst as cst

    line = visit.parent(node)
    while line is not None and not isinstance(line, cst.BaseStatement):
        line = visit.parent(line)
    block = visit.parent(line) if line is not None else None
    region = visit.parent(block) if block is not None else None
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, cst.IndentedBlock):
        return None
    if not isinstance(region, cst.With) or len(region.items) != 1 or region.asynchronous is not None:
        return None
    if regions != {visit.span(region.items[0].item)}:
        return None
    index = next(i for i, statement in enumerate(block.body) if statement is line)
    if index == 0 or not _only_steps(moment, visit, visit.span(line).start.row, visit.span(region).end.row):
        return None
    first, last = visit.span(line).start.row, visit.span(region).end.row
    outer = visit.span(region).start.column - 1
    inner = visit.span(line).start.column - 1
    edits = []
    for row in range(first, last + 1):
        text = visit.source.line(row)
        if text.strip() and len(text) - len(text.lstrip()) < inner:
            return None
        if text.strip():
            edits.append(Edit(Span(Location(row, outer + 1), Location(row, inner + 1)), ""))
    return visit.fix(Applicability.UNSAFE, "Move the backward pass behind the region", *edits)


def _only_steps(moment: Moment, visit: Visit, first: int, last: int) -> bool:
    """Whether all calls from the backward pass to the end of the region belong to the training step, or log it."""
    events = {id(m.event.node) for m in visit.facts.training.moments}
    for call in moment.event.scope.calls:
        if not first <= call.lineno <= last or id(call) in events:
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name not in _HARMLESS:
            return False
    return True


_HARMLESS = frozenset(
    {"scale", "item", "parameters", "append", "print", "detach", "cpu", "get_scale", "update", "step"}
)
