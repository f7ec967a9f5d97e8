"""The child that records: one way of running, one model after the other.

``python -m dtype_truth.record_child LIBRARY SCENARIO DEVICE MODEL...`` writes a JSON line for each model to standard
output, and with nothing but the library the names of all its models.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import torch

from amplint.infer.lattice.scenarios import Scenario, find_scenario
from amplint.verify.modes import Call
from amplint.verify.run import Where, prepare, region
from dtype_truth.libraries import NotBuilt, all_models, build
from dtype_truth.recorder import Recorder
from dtype_truth.truth import Case, Recording


def record(case: Case, scenario: Scenario, where: Where) -> Recording:
    """Build the model and run it once, in eval mode and without gradients. To be called inside ``where.policy()``."""
    try:
        model = build(case.library, case.model)
        package = sys.modules[case.library]
        root = Path(package.__file__ or "").parent
        modeling = Path(sys.modules[model.cls.__module__].__file__ or "")
        built = prepare(model.recipe, scenario, Call("eval-no-grad"), where)
        recorder = Recorder(root)
        with torch.no_grad(), region(scenario.autocast, where), recorder:
            built.module(*built.args, **built.kwargs)
    except NotBuilt as error:
        return Recording(case, error=f"not built: {error}")
    except Exception as error:
        text = (str(error).strip().splitlines() or [""])[0]
        return Recording(case, error=f"{type(error).__name__}: {text[:300]}")
    rows, mixed = recorder.rows()
    return Recording(case, str(root), str(modeling.relative_to(root)), model.how, mixed, None, rows)


def main(library: str, *way_and_models: str) -> None:
    """What the module says. What the models print goes to standard error."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if not way_and_models:
        print(json.dumps(all_models(library)), file=results, flush=True)
        return
    name, device, *models = way_and_models
    scenario = find_scenario(name)
    assert scenario is not None
    where = Where(device, "cpu")
    with where.policy():
        for model in models:
            made = record(Case(library, model, name, device), scenario, where)
            print(json.dumps(made.to_json()), file=results, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
