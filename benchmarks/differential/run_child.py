"""The child that runs models: one device's policy, one model after the other.

``python -m differential.run_child LIBRARY DEVICE MODEL...`` writes a JSON line for each model to standard output.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from dtype_truth.libraries import NotBuilt, build, load

from amplint.emulation.gaps import gap
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.verify.coverage import Coverage
from amplint.verify.modes import Call
from amplint.verify.run import Where, run
from differential.outcome import Crash, Outcome

if TYPE_CHECKING:
    from dtype_truth.libraries import Model

    from amplint.infer.lattice.scenarios import Scenario
    from amplint.verify.run import Run

MODES = (Call("train"), Call("eval-no-grad"))


def outcome(library: str, name: str, where: Where) -> Outcome:
    """Build a model and run it in float32 and in every default scenario. To be called inside ``where.policy()``."""
    try:
        model = build(library, name)
    except NotBuilt as error:
        return Outcome(library, name, error=f"not built: {error}")
    except Exception as error:
        return Outcome(library, name, error=_said(error))
    root = Path(sys.modules[library.partition(".")[0]].__file__ or "").parent
    crashes: list[Crash] = []
    clean: dict[str, dict[str, set[int]]] = {}
    modes: dict[str, list[str]] = {}
    for call in MODES:
        control, _ = _run(model, CONTROL, call, where, root)
        if control.error is not None:
            continue
        for scenario in DEFAULT_SCENARIOS:
            done, lines = _run(model, scenario, call, where, root)
            if done.error is not None:
                crashes.append(_crash(done.error, scenario, call, root))
                continue
            modes.setdefault(scenario.name, []).append(call.mode)
            for file, rows in lines.items():
                clean.setdefault(scenario.name, {}).setdefault(file, set()).update(rows)
    if not modes and not crashes:
        return Outcome(library, name, error="fails in float32")
    found = {scenario: {file: sorted(rows) for file, rows in files.items()} for scenario, files in clean.items()}
    return Outcome(library, name, str(root), None, tuple(crashes), found, modes)


def _run(
    model: Model, scenario: Scenario, call: Call, where: Where, root: Path
) -> tuple[Run, dict[str, frozenset[int]]]:
    mine = (module for name, module in [*sys.modules.items()] if name.partition(".")[0] == root.name)
    # not by getattr(): that imports a lazy module, which may fail
    files = [file for module in mine if (file := vars(module).get("__file__"))]
    watch = Coverage(files)
    done = run(model.recipe, scenario, call, where, watch=watch)
    lines = {str(Path(file).relative_to(root)): watch.lines(file) for file in files}
    return done, {file: rows for file, rows in lines.items() if rows}


def _crash(error: BaseException, scenario: Scenario, call: Call, root: Path) -> Crash:
    frames = tuple(
        (str(Path(frame.filename).relative_to(root)), frame.lineno or 0)
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(root)
    )
    return Crash(scenario.name, call.mode, _said(error), frames, gap(error) is not None)


def _said(error: BaseException) -> str:
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text[:300]}"


def main(library: str, device: str, *models: str) -> None:
    """What the module says. What the models print goes to standard error."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for model in models:
        load(library, model)
    where = Where(device, "cpu")
    with where.policy():
        for model in models:
            print(json.dumps(outcome(library, model, where).to_json()), file=results, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
