"""Gradients that are clipped, or whose norm is taken, while they are multiplied by the loss scale."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.flow.training.steps import Gradients, Step
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.flow.training.steps import Moment
    from amplint.infer.state.facts import FileFacts


def scaled_gradients(facts: FileFacts) -> Iterator[tuple[Moment, Gradients]]:
    """The clippings of such gradients and, where there is none, their norms; each with what the gradients are."""
    told = False
    for moment in (*facts.training.moments_of(Step.CLIP), *facts.training.moments_of(Step.NORM)):
        norm = moment.event.step is Step.NORM
        if norm and (told or _divides(moment)):
            continue
        found = moment.gradients
        handled = any(m.event.scope is moment.event.scope for m in facts.training.moments_of(Step.UNSCALE))
        if Gradients.UNSCALED in found or (handled and found != {Gradients.SCALED}):
            continue
        kind = None
        if Gradients.SCALED in found or (not norm and _stepped_early(facts, moment)):
            kind = Gradients.SCALED
        elif not norm and Gradients.MANAGED in found and _may_scale(facts):
            kind = Gradients.MANAGED
        if kind is None:
            continue
        told = told or not norm
        yield moment, kind


def _stepped_early(facts: FileFacts, moment: Moment) -> bool:
    """Whether a function clips what its caller left and then steps with a scaler, in a file that never unscales
    anywhere else."""
    steps = facts.training.moments_of(Step.SCALER_STEP)
    if not any(id(moment.event.node) in state.early_clips for step in steps for state in step.states):
        return False
    elsewhere = facts.training.moments_of(Step.UNSCALE, Step.MANAGED_CLIP)
    return all(other.event.scope is moment.event.scope for other in elsewhere)


def _may_scale(facts: FileFacts) -> bool:
    """Whether an Accelerator or Fabric of the file may be set to float16: its precision is given as no other."""
    settings = [
        keyword.value
        for thing in facts.training.managers
        if isinstance(thing.node, ast.Call)
        for keyword in thing.node.keywords
        if keyword.arg in ("mixed_precision", "precision")
    ]
    return any(
        not isinstance(value, ast.Constant) or "16" in str(value.value).replace("bf16", "") for value in settings
    )


def _divides(moment: Moment) -> bool:
    """Whether the function of an event computes with the scale, and so may divide itself."""
    scope = moment.event.scope
    scales = {t.id for t, value in scope.assignments if isinstance(t, ast.Name) and _reads(value, {"get_scale"})}
    computed = nodes_of_kind(scope.node, ast.BinOp, ast.AugAssign)
    return any(_reads(node, {"get_scale", *scales}) for node in computed)


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(getattr(part, "attr", getattr(part, "id", None)) in names for part in ast.walk(node))
