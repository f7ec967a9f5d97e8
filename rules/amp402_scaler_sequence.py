"""AMP402: the calls around a GradScaler are missing, doubled or in the wrong order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.misused_scalers import idle_beside_float16, refused_uses, scaled_twice
from amplint.claims.needless_scalers import for_bfloat16, kept_while_off, made_anew
from amplint.claims.scaled_losses import scaled_reads
from amplint.claims.scaled_penalties import penalties
from amplint.claims.scaler_order import JUDGES
from amplint.claims.sharded_parameters import alone_beside_shards
from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import likely_loss
from amplint.claims.training_steps import scaled_scenarios
from amplint.claims.unscaled_losses import unscaled_losses
from amplint.rule import ASSUMED, FORCED, Applicability, Cause, Example, Gradients, Rule, Severity, Step, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Moment, Visit

_IDLE = "is off for good beside autocast in float16, so gradients below its range become zero: pass enabled=True"
_UNSCALED = "nothing scales this loss, so its gradients below float16's range become zero: use torch.amp.GradScaler"
_ALONE = (
    "each process of FSDP steps and scales by its own shard alone: use "
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler"
)
_NEVER_SCALED = "divides by the scale the gradients of what was never multiplied by it: scale what grad() is given"
_STILL_SCALED = "computes with gradients of a scaled loss: divide them by scaler.get_scale() first"
_TWICE = "scales a loss that is scaled already, and the step divides by the scale once: scale it once"


class ScalerSequence(Rule):
    """Scaling, unscaling, stepping and updating do not follow each other as a GradScaler needs it.

    What it does
    ------------
    Follows a training step through branches, loops and helpers of the same file, and reports: `optimizer.step()` on
    gradients of a scaled loss; `scaler.step()` on gradients of a loss that was never scaled; `unscale_()` or `step()`
    called again for the same optimizer before `update()`; `unscale_()` after `step()`; `update()` with no step or
    unscaling since the last one, right before the step, or after an optimizer that stepped by itself; a loss that the
    same scaler scales twice, or whose number is read behind `scale()`; a scaler that steps and is never updated, or is
    made anew for every batch, or scales for bfloat16, or is off for good while every region is in float16; the backward
    pass of a loss that a float16 region computed, in a training step of a file that has no scaler; a call of the scaler
    itself, of a method that it lacks, or of one with arguments that it does not take; a step with a closure; gradients
    of `torch.autograd.grad` that are divided by a scale which they never had, or computed with while they have it; a
    plain scaler beside a model that FSDP shards; and the state of a scaler that is on for float16 alone, kept under a
    test that bfloat16 passes too.
    Where only some paths fail, as with a micro-batch that skips the step, it is reported when the call
    itself runs every time.

    Why it is bad
    -------------
    A scaler keeps one state an optimizer between two updates: ready, unscaled, stepped. Out of order it raises. Past
    it, `optimizer.step()` moves the weights by gradients thousands of times too large, and `scaler.step()` divides by
    the scale what was never multiplied. A scaled loss that is logged, or decides when to stop, is as much too large,
    and changes with the scale. The state of a scaler that is off is empty, and one that is on refuses it. A scaler
    looks for overflow in the gradients of its process: with shards, one process skips a step that the others take.

    How it shows
    ------------
    ```text
    RuntimeError: unscale_() has already been called on this optimizer since the last update().
    RuntimeError: unscale_() is being called after step().
    RuntimeError: step() has already been called since the last update().
    AssertionError: No inf checks were recorded prior to update.
    AssertionError: Attempted step but _scale is None.
    TypeError: 'GradScaler' object is not callable
    RuntimeError: Closure use is not currently supported if GradScaler is enabled.
    RuntimeError: The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.
    ```
    or, with `optimizer.step()`, a loss that is nan after a few steps.

    Example
    -------
    ```python
    scaler.scale(loss).backward()
    optimizer.step()
    scaler.update()
    ```
    Use instead:
    ```python
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    Fix safety
    ----------
    Unsafe: `optimizer.step()` becomes `scaler.step(optimizer)`, which changes what is trained, and a scaler that the
    file never updates is updated after its only step. The other orders have no fix, since only the author knows which
    call is the one too many.
    """

    code: ClassVar[str] = "AMP402"
    name: ClassVar[str] = "scaler-sequence"
    severity: ClassVar[Severity] = Severity.ERROR
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("GradScaler", "unscale_", ".scale(", "autocast(")
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def train_step(model, optimizer, scaler: torch.amp.GradScaler, x):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(x).float().square().mean()
    scaled = scaler.scale(loss)
    scaled.backward()
    optimizer.step()  # expect
    scaler.update(1024.0)


def reproduce():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_step(model, optimizer, torch.amp.GradScaler("cpu"), torch.randn(8, 4))
    assert model.weight.abs().max() < 10, "the weights are thousands of times too large"
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch


def train(model, optimizer, loader, dtype):
    scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16)
    for x in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = scaled_scenarios(facts)
        if not scenarios:
            return
        for moment in facts.training.moments_of(*JUDGES):
            found = JUDGES[moment.event.step](facts, moment)
            if found is not None:
                message, severity, standing, causes = found
                span = facts.span(moment.event.node)
                yield Suspect(span, span, message, scenarios, standing, causes, severity, data=moment)
        in_bfloat16 = tuple(scenario.name for scenario in facts.scenarios if scenario.autocast == "bfloat16")
        around = Surroundings.of(facts.source.tree)
        for call in for_bfloat16(facts, around) if in_bfloat16 else ():
            message = (
                "scales gradients for bfloat16, which has the range of float32: pass enabled=False, or take it away"
            )
            yield likely_loss(facts, call, message, in_bfloat16)
        for use in refused_uses(facts):
            span, standing = facts.span(use.call), FORCED if use.certain else ASSUMED
            yield Suspect(span, span, use.message, scenarios, standing, severity=Severity.ERROR)
        for call in scaled_twice(facts):
            yield likely_loss(facts, call, _TWICE, scenarios)
        for call, region in idle_beside_float16(facts):
            cause = Cause(facts.path, facts.span(region), "runs the forward pass in float16")
            yield likely_loss(facts, call, _IDLE, scenarios, (cause,))
        for call, region in unscaled_losses(facts, around):
            cause = Cause(facts.path, facts.span(region), "runs the forward pass in float16")
            yield likely_loss(facts, call, _UNSCALED, scenarios, (cause,))
        for read, scaling in scaled_reads(facts, around):
            cause = Cause(facts.path, facts.span(scaling), "multiplies the loss by the scale")
            message = f"`{ast.unparse(read)}` is the loss multiplied by the scale: read it before scaler.scale()"
            yield likely_loss(facts, read, message, scenarios, (cause,))
        for penalty in penalties(facts):
            was = "computes them of a scaled loss" if penalty.scaled else "computes them of what is not scaled"
            cause = Cause(facts.path, facts.span(penalty.computed), was)
            message = _STILL_SCALED if penalty.scaled else _NEVER_SCALED
            yield likely_loss(facts, penalty.node, message, scenarios, (cause,))
        for call, wrapping in alone_beside_shards(facts, around):
            cause = Cause(facts.path, facts.span(wrapping), "leaves each process a shard of the parameters")
            yield likely_loss(facts, call, _ALONE, scenarios, (cause,))
        for call in made_anew(facts, around):
            message = "makes a new scaler for every batch, whose scale never adapts: make one for the whole training"
            yield likely_loss(facts, call, message, scenarios)
        for call, test, enabled in kept_while_off(facts, around):
            wanted = ast.unparse(enabled)
            message = f"this state is empty with bfloat16, since the scaler is on for float16 alone: test {wanted}"
            causes = (
                Cause(facts.path, facts.span(enabled), "on for float16 alone"),
                Cause(facts.path, facts.span(test), "true in bfloat16 too"),
            )
            yield likely_loss(facts, call, message, scenarios, causes)

    def visit_BinaryOperation(self, node: cst.BinaryOperation, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        moment: Moment | None = suspect.data
        if moment is not None and moment.event.step is Step.SCALER_STEP:
            visit.report(suspect, _updated(node, moment, visit))
            return
        if moment is None or moment.event.step is not Step.OPTIMIZER_STEP or node.args:
            visit.report(suspect)
            return
        scaler = _scaler_here(visit.facts, moment)
        if scaler is None or not isinstance(node.func, cst.Attribute):
            visit.report(suspect)
            return
        edit = visit.replace(node, f"{scaler}.step({visit.code(node.func.value)})")
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Step with the scaler", edit))


def _updated(node: cst.Call, moment: Moment, visit: Visit) -> Fix | None:
    """Update the scaler behind its only step, where nothing in the file updates one."""
    import libcst as cst

    training, statement = visit.facts.training, visit.parent(node)
    line = visit.parent(statement) if isinstance(statement, cst.Expr) else None
    steps = training.moments_of(Step.SCALER_STEP)
    if training.moments_of(Step.UPDATE) or len({id(step.event.node) for step in steps}) != 1:
        return None
    scaled = moment.gradients and Gradients.PLAIN not in moment.gradients
    scaler = node.func.value if isinstance(node.func, cst.Attribute) else None
    if scaler is None or not scaled or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    edit = visit.insert_after(line, f"{visit.code(scaler)}.update()")
    return visit.fix(Applicability.UNSAFE, "Update the scaler after its step", edit)


def _scaler_here(facts: FileFacts, moment: Moment) -> str | None:
    """How the function of an event writes its scaler, where it has one."""
    roles, scope = facts.training.roles, moment.event.scope
    for call in scope.calls:
        func = call.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name | ast.Attribute):
            continue
        if roles.scaler(func.value, scope) is not None:
            return ast.unparse(func.value)
    return None
