"""The child process of one target: builds it, runs every cell, and writes one line of JSON for each event.

Started by :mod:`amplint.verify.parent` with the path of a job file. Results go to the job's ``results`` file, never to
stdout, which belongs to the code under test.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.verify.job import BUILD_SHARE, CONFIRMING, MODES, OTHER, VARIANTS_SHARE, Job
from amplint.verify.limits import forbid_core_dumps, limit_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.verify.build import Recipe, Variant
    from amplint.verify.job import Claim, Outcome
    from amplint.verify.run import Where


def main() -> None:
    """Run the job that the first argument names."""
    began = time.monotonic()
    job = Job.from_json(json.loads(Path(sys.argv[1]).read_text()))
    from amplint.verify.run import Where

    forbid_core_dumps()
    if job.run_on == "cpu":
        limit_memory(job.memory)
    warnings.simplefilter("ignore")
    with open(job.results, "a", encoding="utf-8") as results:

        def tell(event: str, **values: Any) -> None:
            results.write(json.dumps({"event": event, **values}) + "\n")
            results.flush()

        where = Where(job.device, job.run_on, job.capability)
        with where.policy() as asked:
            if job.snippets:
                _run_snippets(job, where, tell)
            elif (recipe := _recipe(job, tell)) is not None:
                _run_variants(job, recipe, where, tell, began)
        tell("done", asked_capability=bool(asked))


def _recipe(job: Job, tell: Callable[..., None]) -> Recipe | None:
    from amplint.verify.build import CannotBuild, Deadline, find_recipe
    from amplint.verify.factories import find_factory
    from amplint.verify.loading import LoadError, find, load, make_importable, module_name, overlay_files

    try:
        path, root = Path(job.path), Path(job.root)
        overlay_files(job.overlay)
        make_importable(root, root / "src", module_name(path)[0])
        factory = find_factory(job.factory) if job.factory else None
        namespace = load(path)
        target = find(namespace, job.name) if job.name else None
        deadline = Deadline.after(job.timeout * BUILD_SHARE)
        return find_recipe(target, namespace=namespace, factory=factory, seed=job.seed, deadline=deadline)
    except LoadError as error:
        tell("cannot-build", reason=str(error), advice="")
    except CannotBuild as error:
        tell("cannot-build", reason=error.reason, advice=error.advice)
    return None


def _run_variants(job: Job, recipe: Recipe, where: Where, tell: Callable[..., None], began: float) -> None:
    """Run what is built first in every scenario, then its variants in those where something is unsettled."""
    import torch

    from amplint.verify.build import Deadline, variants

    baseline = torch.load(job.baseline) if job.baseline and Path(job.baseline).exists() else {}
    answers: dict[str, Any] = {}
    outcomes = _run_cells(job, recipe, where, tell, baseline, answers)
    settled = [claim for claim in job.claims if _settled(claim, outcomes)]
    lines = [line for line in job.lines if not any(claim.covers(*line) for claim in settled)]
    deadline = Deadline.after(began + job.timeout * VARIANTS_SHARE - time.monotonic(), slack=1)
    if job.variants != () and _unsettled(job, outcomes):
        for variant in variants(recipe, lines, deadline, only=job.variants):
            left = replace(job, scenarios=_unsettled(job, outcomes))
            if deadline.left() < 0 or not left.scenarios:
                break
            outcomes += _run_cells(left, variant.recipe, where, tell, baseline, answers, variant)
    if job.answers is not None:
        torch.save(answers, job.answers)


def _run_cells(
    job: Job,
    recipe: Recipe,
    where: Where,
    tell: Callable[..., None],
    baseline: dict[str, Any],
    answers: dict[str, Any],
    other: Variant | None = None,
) -> list[Outcome]:
    import torch

    from amplint.infer.lattice.scenarios import find_scenario
    from amplint.verify.cell import Answers, evaluate, plan
    from amplint.verify.described import built_text

    variant = other.label if other is not None else ""
    outcomes: list[Outcome] = []
    made = recipe.make()
    planned = {mode: one for mode in MODES if (one := plan(recipe, made, mode, where)) is not None}
    text = built_text(recipe)
    tell(
        "built",
        how=recipe.how,
        target=_name(made.module),
        modes=list(planned),
        torch=torch.__version__,
        variant=variant,
        built=text,
    )
    for name in job.scenarios:
        scenario = find_scenario(name)
        assert scenario is not None, name
        for mode, one in planned.items():
            if (variant, name, mode) in job.skip:
                continue
            tell("start", cell=(variant, name, mode))
            key = f"{variant} {name} {mode}"
            before = Answers(*baseline[key]) if key in baseline else None
            outcome, given = evaluate(job, recipe, scenario, one, where, before, variant)
            answers[key] = (given.reference, given.own)
            outcome = replace(outcome, built=text)
            if other is not None and other.whole and not _concerns(job, outcome):
                outcome = replace(outcome, kind=OTHER)
            outcomes.append(outcome)
            tell("cell", outcome=outcome.to_json())
    return outcomes


def _settled(claim: Claim, outcomes: list[Outcome], scenario: str = "") -> bool:
    """Whether a run settled the claim, in a scenario or in any; what claims no failure, by being reached."""
    return any(
        claim.fingerprint in (o.confirmed if claim.settled_by_failure else o.reached)
        for o in outcomes
        if scenario in ("", o.scenario)
    )


def _unsettled(job: Job, outcomes: list[Outcome]) -> tuple[str, ...]:
    """The scenarios in which a finding is not confirmed; without findings, those in which nothing is."""
    if not job.claims:
        found = {outcome.scenario for outcome in outcomes if outcome.kind in CONFIRMING}
        return tuple(name for name in job.scenarios if name not in found)
    open_ = {s for claim in job.claims for s in claim.scenarios if not _settled(claim, outcomes, s)}
    return tuple(name for name in job.scenarios if name in open_)


def _concerns(job: Job, outcome: Outcome) -> bool:
    """Whether what became of a class that owns the target is about the target: a finding confirmed, or a failure on a
    line of it."""
    if outcome.kind not in CONFIRMING or outcome.confirmed:
        return True
    return outcome.location is not None and any(
        first <= outcome.location[1] <= last
        for file, first, last in job.own
        if os.path.realpath(file) == os.path.realpath(outcome.location[0])
    )


def _run_snippets(job: Job, where: Where, tell: Callable[..., None]) -> None:
    from amplint.verify.snippet import Snippet
    from amplint.verify.snippet_run import MODE, run_snippet

    tell("built", how=None, target=job.name, modes=[MODE], torch="", variant="", built="")
    snippets = [Snippet.from_json(data) for data in job.snippets]
    for name in job.scenarios:
        for snippet in snippets:
            if name in snippet.scenes and ("", name, MODE) not in job.skip:
                tell("start", cell=("", name, MODE))
                tell("cell", outcome=run_snippet(snippet, name, where).to_json())


def _name(module: Any) -> str:
    """The class of a module; of an autograd Function's ``apply``, the Function; of a method, its class; a function's
    own."""
    owner = getattr(module, "__self__", None)
    named = owner if isinstance(owner, type) else type(owner) if owner is not None else type(module)
    return str(module.__qualname__) if inspect.isfunction(module) else named.__qualname__
