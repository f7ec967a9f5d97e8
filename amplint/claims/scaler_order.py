"""What is wrong with one call of a training step that has a scaler, by what came before it on each path."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from amplint.claims.surroundings import Surroundings
from amplint.claims.training_steps import backward_causes, scaler_spelling, spelled, uses, varies
from amplint.finding import Cause, Severity
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Gradients, Step
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.judge.certainty import ASSUMED, FORCED, Standing

if TYPE_CHECKING:
    from amplint.infer.flow.training.steps import Moment, State
    from amplint.infer.state.facts import FileFacts


_Judgement: TypeAlias = tuple[str, Severity, Standing, tuple[Cause, ...]] | None


def _past_the_scaler(facts: FileFacts, moment: Moment) -> _Judgement:
    """``optimizer.step()`` where every path leads there from a scaled loss, or on to an update of the scaler."""
    scaler = scaler_spelling(facts, moment)
    optimizer = spelled(moment)
    if Gradients.SCALED in moment.gradients <= {Gradients.SCALED, Gradients.UNSCALED}:
        message = f"applies gradients that are still multiplied by the loss scale: call {scaler}.step({optimizer})"
        causes = backward_causes(facts, moment, Gradients.SCALED)
        standing = FORCED if moment.gradients == {Gradients.SCALED} else ASSUMED
        return message, Severity.WARNING, standing, causes
    if moment.gradients == {Gradients.UNSCALED} and all(state.unscaled for state in moment.states):
        message = (
            f"applies gradients without asking the scaler whether they overflowed: call {scaler}.step({optimizer})"
        )
        return message, Severity.WARNING, ASSUMED, ()
    update = _idle_update(facts, moment)
    if update is not None:
        message = f"steps without the scaler, which then updates: call {spelled(update)}.step({optimizer})"
        span = facts.span(update.event.node)
        cause = Cause(facts.path, span, "raises in float16 unless the scaler has unscaled, as it has not stepped")
        return message, Severity.ERROR, ASSUMED, (cause,)
    return None


def _idle_update(facts: FileFacts, moment: Moment) -> Moment | None:
    """The update that follows a step in the same block, where no path leads to it from a step of a scaler."""
    around = Surroundings.of(facts.source.tree)
    statement, _ = around.statement(moment.event.node)
    following = around.following(statement) if statement is not None else []
    for update in facts.training.moments_of(Step.UPDATE):
        only = all(state.steps == {Step.OPTIMIZER_STEP} for state in update.states)
        if not only or update.event.sets_scale or update.event.scope is not moment.event.scope:
            continue
        if any(update.event.node in ast.walk(later) for later in following):
            return update
    return None


def _step(facts: FileFacts, moment: Moment) -> _Judgement:
    scaler, event = spelled(moment), moment.event
    closure = _closure(facts, moment)
    if closure is not None:
        message = "hands on a closure, whose gradients a scaler cannot unscale: compute them before the step"
        named = any(keyword.value is closure for keyword in event.node.keywords)
        cause = Cause(facts.path, facts.span(closure), "runs after the scaler has looked for overflow")
        return message, Severity.ERROR, FORCED if named else ASSUMED, (cause,)
    if moment.gradients == {Gradients.PLAIN} and not _is_scaled_elsewhere(facts, moment):
        message = f"divides gradients by the scale that were never multiplied: call {scaler}.scale(loss).backward()"
        causes = backward_causes(facts, moment, Gradients.PLAIN)
        raises = event.scaler is not None and not _scales(facts)
        severity = Severity.ERROR if raises else Severity.WARNING
        return message, severity, FORCED, causes
    update = _update_before(facts, moment)
    if update is not None:
        message = f"steps after {scaler}.update(), which needs a step before it: update once, after all steps"
        cause = Cause(facts.path, facts.span(update.event.node), "updates the scale of these gradients")
        raises = all(state.gradients is Gradients.SCALED for state in moment.states)
        return message, Severity.ERROR, FORCED if raises else ASSUMED, (cause,)
    if _unscaled_again(facts, moment):
        return None
    again = _again(moment, "stepped")
    if again is not None:
        return f"steps a second time before {scaler}.update()", Severity.ERROR, again, ()
    if _never_updated(facts, moment):
        message = f"steps a scaler that is never updated: call {scaler}.update() after the step"
        return message, Severity.ERROR, ASSUMED, ()
    return None


def _closure(facts: FileFacts, moment: Moment) -> ast.expr | None:
    """What a step of torch's own scaler hands on to the optimizer to compute the loss anew: ``closure=``, or a function
    that runs a backward pass.

    torch refuses the first (``GradScaler.step``). It looks for the second's overflow before it runs.
    """
    call, scope = moment.event.node, moment.event.scope
    things = facts.training.roles.of(call.func.value, scope) if isinstance(call.func, ast.Attribute) else ()
    if any(thing.role is not Role.SCALER for thing in things):
        return None
    for keyword in call.keywords:
        if keyword.arg == "closure" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None):
            return keyword.value
    for given in call.args[1:2]:
        owner = scope.binding(given.id) if isinstance(given, ast.Name) else None
        function = owner.function(given.id) if owner is not None and isinstance(given, ast.Name) else None
        inner = given if isinstance(given, ast.Lambda) else function.node if function is not None else None
        attributes = nodes_of_kind(inner, ast.Attribute) if inner is not None else ()
        if any(attribute.attr == "backward" for attribute in attributes):
            return given
    return None


def _is_scaled_elsewhere(facts: FileFacts, moment: Moment) -> bool:
    """Whether another object has the scaler too, such as a loss that scales itself."""
    scaler = moment.event.scaler
    return scaler is not None and facts.training.kept_elsewhere(scaler)


def _update_before(facts: FileFacts, moment: Moment) -> Moment | None:
    """The update of the scaler in the statement right before a step that has gradients to apply."""
    if any(state.gradients is Gradients.NONE for state in moment.states):
        return None
    around = Surroundings.of(facts.source.tree)
    step, _ = around.statement(moment.event.node)
    for update in facts.training.moments_of(Step.UPDATE, scaler=moment.event.scaler):
        before, following = around.statement(update.event.node)
        if following is step and isinstance(before, ast.Expr) and before.value is update.event.node:
            return update
    return None


def _unscale(facts: FileFacts, moment: Moment) -> _Judgement:
    scaler = spelled(moment)
    pair = moment.event.pair
    if pair and all(pair <= state.stepped for state in moment.states):
        return f"unscales after {scaler}.step()", Severity.ERROR, FORCED, ()
    again = _again(moment, "unscaled")
    if again is None:
        return None
    every = "" if again.forced else " when the last pass did not update"
    return f"unscales a second time before {scaler}.update(){every}", Severity.ERROR, again, ()


def _update(facts: FileFacts, moment: Moment) -> _Judgement:
    scaler = moment.event.scaler
    if moment.event.sets_scale or (scaler is not None and facts.training.stepped_by_others(scaler)):
        return None
    if scaler is not None and facts.training.given_away(scaler, moment.event.scope):
        return None

    def idle(state: State) -> bool:
        return scaler in state.updated and not state.steps

    if all(map(idle, moment.states)):
        return "updates again with no step since the last update", Severity.ERROR, FORCED, ()
    if not moment.blurred and not varies(moment) and moment.loops and any(map(idle, moment.states)):
        message = "updates even when this pass did not step: update only after a step"
        return message, Severity.ERROR, ASSUMED, ()
    return None


def _again(moment: Moment, which: str) -> Standing | None:
    """Whether the same optimizer was unscaled or stepped before, since the last update: always, or on some path of a
    loop that this call is not excepted from."""
    pair = moment.event.pair
    if not pair:
        return None
    before = [pair <= getattr(state, which) for state in moment.states]
    if all(before):
        return FORCED
    some = any(before) and not moment.blurred and bool(moment.loops) and not varies(moment)
    return ASSUMED if some else None


def _unscaled_again(facts: FileFacts, moment: Moment) -> bool:
    """Whether what was stepped before was also unscaled before, by a call that raises when it is run again."""
    pair = moment.event.pair
    if not all(pair <= state.unscaled for state in moment.states):
        return False
    unscaling = facts.training.moments_of(Step.UNSCALE, scaler=moment.event.scaler)
    return any(other.event.pair == pair and _unscale(facts, other) is not None for other in unscaling)


def _scales(facts: FileFacts) -> bool:
    """Whether the file scales anything at all."""
    roles = facts.training.roles
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "scale" and roles.scaler(call.func.value, scope)
        for scope in facts.training.program.scopes
        for call in scope.calls
    )


def _never_updated(facts: FileFacts, moment: Moment) -> bool:
    """Whether a scaler that the file makes, and nobody else gets, is stepped without any update."""
    scaler = moment.event.scaler
    if scaler is None or uses(facts, scaler, Step.UPDATE) or facts.training.moments_of(Step.UPDATE):
        return False
    things = facts.training.roles.things.get(scaler, set())
    made = any(thing.role in (Role.SCALER, Role.SHARDED_SCALER) and thing.node is not None for thing in things)
    return made and not facts.training.handed_over(scaler)


JUDGES = {
    Step.OPTIMIZER_STEP: _past_the_scaler,
    Step.SCALER_STEP: _step,
    Step.UNSCALE: _unscale,
    Step.UPDATE: _update,
}
"""By what a call does: what is wrong with it there, as message, severity, standing and causes; None where nothing."""
