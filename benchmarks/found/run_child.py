"""The child that runs cases of one package by one device's policy, one after the other.

``python -m found.run_child FOLDER DEVICE NAME...`` writes a JSON line for each case to standard output.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from amplint.infer.lattice.scenarios import find_scenario
from amplint.verify.build import CannotBuild, Recipe
from amplint.verify.cell import evaluate, plan
from amplint.verify.job import CONFIRMING, FAILED, OTHER, Claim, Job
from amplint.verify.loading import one_line
from amplint.verify.run import Where
from found.case import load
from found.outcome import Result

if TYPE_CHECKING:
    from amplint.verify.cell import Plan
    from found.case import Case


def show(name: str, case: Case, where: Where) -> Result:
    """Run a case in float32 and in its scenario. To be called inside ``where.policy()``.

    An error has to be raised at the case's line. Wrong values show at a later one, so that line has to have run.
    """
    scenario = find_scenario(case.scenario)
    if scenario is None:
        return Result(name, "not shown", f"there is no scenario {case.scenario!r}")
    recipe = Recipe(name, 0, case.build)
    try:
        planned = plan(recipe, recipe.make(), case.mode, where)
    except CannotBuild as error:
        return Result(name, "not shown", f"not built: {error.reason}")
    except Exception as error:
        return Result(name, "not shown", f"not built: {one_line(error)}")
    flaw = _flaw(planned)
    if planned is None or flaw is not None:
        return Result(name, "not shown", flaw or f"cannot run in mode {case.mode!r}")
    file = str(importlib.metadata.distribution(case.package).locate_file(case.path))
    claim = Claim(name, case.code or OTHER, file, ((case.line, case.line),), (scenario.name,))
    job = Job(file, None, where.device, where.run_on, (scenario.name,), results="", root="", claims=(claim,))
    outcome, _ = evaluate(job, recipe, scenario, planned, where, None)
    said = outcome.error or outcome.kind
    if outcome.kind not in CONFIRMING:
        return Result(name, "not shown", f"{outcome.kind} in {scenario.name}: {said}")
    if case.error not in said:
        return Result(name, "not shown", f"another error: {said}")
    if claim.fingerprint not in (outcome.confirmed if outcome.kind == FAILED else outcome.reached):
        at = f"{outcome.location[0]}:{outcome.location[1]}" if outcome.location else "no line"
        return Result(name, "not shown", f"not at {case.place} but at {at}: {said}")
    return Result(name, "shown", said)


def _flaw(planned: Plan | None) -> str | None:
    """Why the float32 run says nothing."""
    if planned is None:
        return None
    if planned.reference.error is not None:
        return f"fails in float32: {one_line(planned.reference.error)}"
    results = (*planned.reference.outputs, *planned.reference.gradients)
    if not all(bool(torch.isfinite(result).all()) for result in results):
        return "not finite in float32"
    return None


def main(folder: str, device: str, *names: str) -> None:
    """What the module says. What the packages print goes to standard error."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cases = load(Path(folder))
    for module in {module for name in names for module in cases[name].imports}:
        importlib.import_module(module)
    where = Where(device, "cpu")
    with where.policy():
        for name in names:
            print(json.dumps(show(name, cases[name], where).to_json()), file=results, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
