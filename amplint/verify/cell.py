"""One cell of a target: a scenario in a mode, judged by a run without instruments, attributed by one with them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from amplint.frozen import dataclass
from amplint.infer.lattice.scenarios import CONTROL
from amplint.verify import judge
from amplint.verify.coverage import Coverage
from amplint.verify.flow import DtypeFlow
from amplint.verify.job import (
    BASE,
    CLEAN,
    CONFIRMING,
    CPU_GAP,
    FAILED,
    HARDWARE,
    LOSS,
    NO_REFERENCE,
    OTHER,
    OVERFLOW,
    Claim,
    Job,
    Outcome,
)
from amplint.verify.loading import one_line
from amplint.verify.modes import Call, calls
from amplint.verify.run import Run, Where, run
from amplint.verify.tensors import dtype_name, dtype_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amplint.infer.lattice.scenarios import Scenario
    from amplint.verify.build import Built, Recipe


@dataclass(frozen=True)
class Plan:
    """How a target is called in one mode, and its float32 run there."""

    call: Call
    reference: Run


def plan(recipe: Recipe, built: Built, mode: str, where: Where) -> Plan | None:
    """None where the target has no use for the mode.

    The base modes stay even if float32 fails in them: then each of their cells says so.
    """
    first: Plan | None = None
    for call in calls(mode, built):
        made = Plan(call, run(recipe, CONTROL, call, where))
        if made.reference.error is None:
            return made
        first = first or made
    return first if mode in BASE else None


@dataclass(frozen=True)
class Answers:
    """Results to compare with another version of the code: float32's, and the cell's own where it gave any."""

    reference: tuple[torch.Tensor, ...]
    own: tuple[torch.Tensor, ...] | None


def evaluate(
    job: Job,
    recipe: Recipe,
    scenario: Scenario,
    planned: Plan,
    where: Where,
    baseline: Answers | None,
    variant: str = "",
) -> tuple[Outcome, Answers]:
    """Run a cell and say what came of it. ``baseline`` is what the code answered before a fix.

    Under autocast, a finding whose line ran and did not fail gets a second chance with inputs in autocast's dtype, as
    an inner module gets them from a layer before it. That run counts only if it confirms a finding.
    """
    start = time.perf_counter()
    inner = (variant, scenario.name, planned.call.mode) in job.inner
    outcome, ran = _look(job, recipe, scenario, planned, where, inner=inner)
    unsettled = set(outcome.reached) - set(outcome.confirmed)
    if scenario.autocast is not None and outcome.kind == CLEAN and unsettled and not inner:
        deeper, ran_deeper = _look(job, recipe, scenario, planned, where, inner=True)
        outcome, ran = (deeper, ran_deeper) if deeper.confirmed else (outcome, ran)
    answers = Answers(planned.reference.outputs, ran.outputs if ran.error is None else None)
    seconds = round(time.perf_counter() - start, 3)
    return replace(outcome, seconds=seconds, difference=_difference(answers, baseline), variant=variant), answers


def _look(
    job: Job, recipe: Recipe, scenario: Scenario, planned: Plan, where: Where, *, inner: bool
) -> tuple[Outcome, Run]:
    """Run without instruments, judge, and where something is to be told run with them.

    ``inner``: float inputs come in the scenario's low dtype, not in float32.
    """
    inputs = _low(scenario) if inner else None
    claims = [claim for claim in job.claims if scenario.name in claim.scenarios]
    attempt = partial(run, recipe, scenario, planned.call, where, inputs=inputs)
    ran = attempt()
    verdict = _judged(recipe, attempt, scenario, planned, where, ran)
    location = judge.location(ran.error, job.path) if ran.error is not None else None
    frames = list(judge.user_frames(ran.error)) if ran.error is not None else []
    timeline: dict[str, Any] | None = None
    reached: list[str] = []
    if verdict.kind != CLEAN or claims or job.trace:
        flow, coverage, all_that_ran = _watched(attempt, claims, verdict.error)
        reached = [claim.fingerprint for claim in claims if _ran(claim, coverage, all_that_ran)]
        failure = flow.first_nonfinite if verdict.kind == OVERFLOW else flow.failure
        if failure is not None and verdict.kind != LOSS:
            if ran.error is not None:
                verdict = _judged(recipe, attempt, scenario, planned, where, ran, failure.op)
            if failure.filename:
                location = location or (failure.filename, failure.row)
                frames.append((failure.filename, failure.row))
        if job.trace:
            timeline = flow.to_json()
    confirmed = _closest(claims, frames) if verdict.kind in CONFIRMING else []
    error, clean = verdict.error, verdict.kind == CLEAN
    if inputs is not None and error is not None:
        error = f"{error} (inputs in {dtype_name(inputs)}, as from a layer under autocast)"
    outcome = Outcome(
        scenario.name,
        planned.call.mode,
        verdict.kind,
        0.0,
        error=error,
        location=None if clean else location,
        family=verdict.family,
        confirmed=tuple(confirmed),
        reached=tuple(dict.fromkeys((*reached, *confirmed))),
        timeline=timeline,
        dtypes=tuple(dtype_name(output.dtype) for output in ran.outputs),
        inner=inner,
        inputs=ran.inputs,
        frames=() if clean else tuple(dict.fromkeys(frames))[::-1],
    )
    return outcome, ran


def _closest(claims: list[Claim], frames: list[tuple[str, int]]) -> list[str]:
    """The claims that a failure confirms, given the lines it went through, innermost first.

    Those on the innermost line that has any; what a class or function as a whole is charged with counts only where no
    claim lies on an operation on the way.
    """
    for governs in (False, True):
        for frame in frames:
            covering = (c for c in claims if c.settled_by_failure and c.governs is governs and c.covers(*frame))
            found = [claim.fingerprint for claim in covering]
            if found:
                return found
    return []


def _judged(
    recipe: Recipe,
    attempt: Callable[..., Run],
    scenario: Scenario,
    planned: Plan,
    where: Where,
    ran: Run,
    op: str | None = None,
) -> judge.Verdict:
    reference = planned.reference
    if ran.error is not None:
        verdict = judge.judge_error(ran.error, emulated=where.emulated, op=op)
        if ran.unlike and verdict.kind == FAILED and verdict.family != "AMP305":
            return judge.Verdict(OTHER, f"{verdict.error} (some complex numbers cannot be as narrow as the rest)")
        if verdict.kind != OTHER or reference.error is None:
            return verdict
    if reference.error is not None:
        kind = judge.judge_error(reference.error, emulated=where.emulated).kind
        kind = kind if kind in (HARDWARE, CPU_GAP) else NO_REFERENCE
        return judge.Verdict(kind, f"fails in float32 too: {one_line(reference.error)}")
    verdict = judge.judge_values(
        reference,
        ran,
        numerics=planned.call.mode != "train",
        repeated=lambda: run(recipe, CONTROL, planned.call, where, seed=1),
        rounded=lambda: run(recipe, CONTROL, planned.call, where, rounded=_low(scenario)),
        smaller=lambda: attempt(loss_scale=judge.SMALL_LOSS),
    )
    if verdict.kind in (OVERFLOW, LOSS) and planned.call.mode != "train" and _is_untrained(recipe):
        batch = Call("train")
        before, after = run(recipe, CONTROL, batch, where), run(recipe, scenario, batch, where)
        if before.error is None and after.error is None and not judge.departs(before, after, verdict.kind):
            return judge.Verdict(OTHER, f"{verdict.error}, but not with statistics of the batch: those are untrained")
    return verdict


def _is_untrained(recipe: Recipe) -> bool:
    """Whether a guessed module has batch norms that have seen no batch: in eval mode they let activations grow."""
    module = recipe.make().module if recipe.guessed else None
    parts = module.modules() if isinstance(module, torch.nn.Module) else ()
    seen = (getattr(part, "num_batches_tracked", None) for part in parts)
    return any(isinstance(count, torch.Tensor) and int(count) == 0 for count in seen)


def _low(scenario: Scenario) -> torch.dtype:
    return dtype_named(scenario.autocast or scenario.parameters)


def _watched(
    attempt: Callable[..., Run], claims: list[Claim], error: str | None
) -> tuple[DtypeFlow, Coverage, Coverage]:
    """The same run under instruments, with the lines that the call ran, and those that building it ran besides;
    ``error`` is what the first run raised, in one line."""
    coverage = Coverage({claim.filename for claim in claims})
    building = Coverage({filename for claim in claims for filename, _, _ in claim.through})
    flow = DtypeFlow()

    @contextmanager
    def both() -> Iterator[None]:
        with coverage, flow:
            yield

    with building:
        seen = attempt(watch=both())
    if isinstance(seen.error, Exception) and one_line(seen.error) == error:
        flow.conclude(seen.error)
    return flow, coverage, building


def _ran(claim: Claim, coverage: Coverage, building: Coverage) -> bool:
    """Whether a claim's lines ran, and what decides its dtypes."""
    lines = coverage.lines(claim.filename)
    return any(_within(lines, *rows) for rows in claim.rows) and all(
        _within(coverage.lines(filename) | building.lines(filename), *rows) for filename, *rows in claim.through
    )


def _within(lines: Iterable[int], first: int, last: int) -> bool:
    return any(first <= row <= last for row in lines)


def _difference(answers: Answers, baseline: Answers | None) -> float | None:
    """The larger change against the baseline: in float32, and in the cell itself where both gave results."""
    if baseline is None:
        return None
    changes = [judge.largest_error(baseline.reference, answers.reference)]
    if baseline.own is not None and answers.own is not None:
        changes.append(judge.largest_error(baseline.own, answers.own))
    known = [change for change in changes if change is not None]
    return max(known) if known else None
