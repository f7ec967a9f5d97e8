"""A training step that scales its loss: the scenarios that do, how objects are spelled, what repeats."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.finding import Cause
from amplint.infer.flow.training.assumed import assigned_in
from amplint.infer.flow.training.steps import Gradients, Step

if TYPE_CHECKING:
    from amplint.infer.flow.training.program import Place
    from amplint.infer.flow.training.steps import Moment
    from amplint.infer.state.facts import FileFacts

TRAINING = ("GradScaler", "unscale_", "caler.scale(", "caler.step(", "ccelerator", "abric")
"""Strings without which a file has no scaler: what the gate asks for beside a rule's own tokens."""


def scaled_scenarios(facts: FileFacts) -> tuple[str, ...]:
    """The judged scenarios in which a loss is scaled: those of autocast in float16."""
    return tuple(scenario.name for scenario in facts.scenarios if scenario.autocast == "float16")


def spelled(moment: Moment) -> str:
    """How the code writes the object whose method an event calls: ``self.scaler``."""
    func = moment.event.node.func
    return ast.unparse(func.value) if isinstance(func, ast.Attribute) else "the scaler"


def backward_causes(facts: FileFacts, near: Moment, *kinds: Gradients) -> tuple[Cause, ...]:
    """Where the gradients came from: the last backward passes before an event that gave such gradients."""
    found = [
        moment
        for moment in facts.training.moments_of(Step.BACKWARD)
        if any(kind in moment.event.gradients for kind in kinds)
    ]
    row = near.event.node.lineno
    same = [m for m in found if m.event.scope is near.event.scope and m.event.node.lineno <= row] or found
    return tuple(Cause(facts.path, facts.span(moment.event.node), _CAUSES[kinds[0]]) for moment in same[-1:] if kinds)


_CAUSES = {
    Gradients.SCALED: "gradients of the scaled loss",
    Gradients.PLAIN: "gradients of a loss that was not scaled",
    Gradients.MANAGED: "in float16 this scales the loss",
}


def varies(moment: Moment) -> bool:
    """Whether an event in a loop runs in some passes only: a test above it asks for what the loop changes."""
    if not moment.loops:
        return bool(moment.tests)
    names = assigned_in(moment.loops[-1])
    return any(
        (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and f".{node.attr}" in names)
        or isinstance(node, ast.Call)
        for test in moment.tests
        for node in ast.walk(test)
    )


def scaler_spelling(facts: FileFacts, near: Moment) -> str:
    """How the scaler is written nearest to an event: in its function, else anywhere in the file."""
    calls = facts.training.moments_of(Step.SCALER_STEP, Step.UNSCALE, Step.UPDATE)
    same = [moment for moment in calls if moment.event.scope is near.event.scope] or list(calls)
    return spelled(same[0]) if same else "scaler"


def uses(facts: FileFacts, place: Place, *steps: Step) -> tuple[Moment, ...]:
    """The events of one scaler."""
    return facts.training.moments_of(*steps, scaler=place)
