"""AMP401: gradients are clipped, measured or added to while they are multiplied by the loss scale."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.changed_gradients import changed_gradients
from amplint.claims.scaled_gradients import scaled_gradients
from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import likely_loss
from amplint.claims.training_steps import TRAINING, backward_causes, scaled_scenarios, scaler_spelling
from amplint.rule import Applicability, Example, Gradients, Rule, Severity, Standing, Step, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Moment, Visit

_SETUP = """\
import torch
from torch import nn


def step_of(train_step):
    \"\"\"How far one training step with a learning rate of 1 moves the weight.\"\"\"
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    before = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    train_step(model, optimizer, torch.randn(8, 4))
    return (model.weight - before).norm().item()

"""


class ClipBeforeUnscale(Rule):
    """Gradients are clipped, measured or added to between the backward pass of a scaled loss and the scaler's step.

    What it does
    ------------
    Follows a training step through branches, loops and helpers of the same file, and reports `clip_grad_norm_`,
    `clip_grad_value_` and clamped gradients, or norms of gradients where no such clipping is found, where a path leads
    there from `scaler.scale(loss).backward()` and none through `scaler.unscale_(optimizer)`. Reports noise, and
    multiples of the weight itself, that are added to a gradient there, also in a helper of the file that runs between
    the two. Reports torch's clipping
    after `accelerator.backward(loss)` or `fabric.backward(loss)` where float16 may be chosen, as those scale by
    themselves. A scaler is an object that was made or annotated as a GradScaler, or that is used as only one can be.

    Why it is bad
    -------------
    The gradients are multiplied by a scale of, say, 65536, so nearly every one exceeds the bound: clipping to a norm
    of 1 makes it a norm of 1/65536 once the scaler has divided. Training seems to run, at a learning rate that is
    thousands of times too small and changes with the scale. A norm that is logged or decides something is as much too
    large. Noise or decay that is added to a gradient is divided with it, and is as good as gone.

    How it shows
    ------------
    No error. The loss falls very slowly in float16 and as it should in bfloat16; logged gradient norms are huge.

    Example
    -------
    ```python
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```
    Use instead:
    ```python
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```

    Fix safety
    ----------
    Unsafe: the gradients that are clipped change, which is the point. Offered where the same function steps one
    optimizer with the scaler under no more conditions than it clips; elsewhere, as with a clip at every micro-batch of
    an accumulated step, `unscale_` would raise at the second one, and the clip must move next to the step.
    """

    code: ClassVar[str] = "AMP401"
    name: ClassVar[str] = "clip-before-unscale"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = (
        "clip_grad",
        "grad.clamp_",
        "grad.data.clamp_",
        "grad.clip_",
        "grad.data.clip_",
        "norm(",
        "grad.add_(",
        "grad.data.add_(",
        "grad +=",
        "grad.data +=",
        "grad -=",
        "grad.data -=",
        "grad = ",
        "grad.data = ",
    )
    context: ClassVar[tuple[str, ...]] = TRAINING
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            _SETUP
            + """\

def train_step(model, optimizer, x):
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(x).float().square().mean()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect
    scaler.step(optimizer)
    scaler.update()


def reproduce():
    assert step_of(train_step) > 0.01, "the step is thousands of times too small"
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def train(model, loader, optimizer, scaler: torch.amp.GradScaler, use_amp, accumulate, max_norm=None):
    for index, x in enumerate(loader):
        with torch.autocast("cuda", dtype=torch.float16, enabled=use_amp):
            loss = model(x).float().square().mean() / accumulate
        if use_amp:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if (index + 1) % accumulate:
            continue
        if use_amp:
            scaler.unscale_(optimizer)
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if use_amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        optimizer.zero_grad()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = scaled_scenarios(facts)
        for moment, kind in scaled_gradients(facts) if scenarios else ():
            span = facts.span(moment.event.node)
            standing = Standing(forced=moment.gradients == {Gradients.SCALED})
            causes = backward_causes(facts, moment, kind)
            yield Suspect(span, span, _message(facts, moment, kind), scenarios, standing, causes, data=moment)
        for change in changed_gradients(facts, Surroundings.of(facts.source.tree)) if scenarios else ():
            unscale = f"{scaler_spelling(facts, change.backward)}.unscale_()"
            message = (
                f"adds `{ast.unparse(change.added)}` to gradients that are multiplied by the loss scale, "
                f"by which the step divides it too: call {unscale} before"
            )
            yield likely_loss(
                facts, change.node, message, scenarios, backward_causes(facts, change.backward, Gradients.SCALED)
            )

    def visit_AugAssign(self, node: cst.AugAssign, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect)

    def visit_Assign(self, node: cst.Assign, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        moment: Moment | None = suspect.data
        if moment is None:
            visit.report(suspect)
            return
        call = _unscale_call(visit.facts, moment)
        statement = _statement(node, visit)
        if call is None or statement is None:
            visit.report(suspect)
            return
        edit = visit.insert_before(statement, call)
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Unscale the gradients before they are clipped", edit))


def _message(facts: FileFacts, moment: Moment, kind: Gradients) -> str:
    if kind is Gradients.MANAGED:
        return (
            "clips gradients that are still multiplied by the loss scale in float16: clip by what did the backward pass"
        )
    scaler = scaler_spelling(facts, moment)
    does = "measures" if moment.event.step is Step.NORM else "clips"
    return f"{does} gradients that are still multiplied by the loss scale: call {scaler}.unscale_() before"


def _unscale_call(facts: FileFacts, moment: Moment) -> str | None:
    """``scaler.unscale_(optimizer)`` as the same function spells both, None where it cannot be put before the clip."""
    scope, clip = moment.event.scope, moment.event.node
    steps = [
        other
        for other in facts.training.moments_of(Step.SCALER_STEP)
        if other.event.scope is scope and other.event.node.lineno > clip.lineno
    ]
    spellings = {ast.unparse(step.event.node) for step in steps}
    if len(spellings) != 1 or len(steps[0].event.node.args) != 1:
        return None
    step = steps[0]
    same_loop = step.loops == moment.loops
    if not same_loop or [id(t) for t in moment.tests[: len(step.tests)]] != [id(t) for t in step.tests]:
        return None
    call = step.event.node
    names = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
    for target, value in scope.assignments:
        bound = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        if bound & names and clip.lineno <= value.lineno <= call.lineno:
            return None
    assert isinstance(call.func, ast.Attribute)
    return f"{ast.unparse(call.func.value)}.unscale_({ast.unparse(call.args[0])})"


def _statement(node: cst.CSTNode, visit: Visit) -> cst.CSTNode | None:
    """The simple statement line that a call stands in."""
    import libcst as cst

    current: cst.CSTNode | None = node
    while current is not None and not isinstance(current, cst.BaseStatement):
        current = visit.parent(current)
    return current if isinstance(current, cst.SimpleStatementLine) else None
