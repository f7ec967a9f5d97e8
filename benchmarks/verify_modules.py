"""What does verify confirm in modules that nobody complains of?

    python benchmarks/verify_modules.py LIBRARY [--count 60] [--seed 1] [--scenario NAME]…

Draws classes as ``build_modules.py`` does, runs each that can be built in every scenario and mode by CUDA's policy over
CPU kernels, and prints everything that is confirmed, to be looked at: each is a defect of the module or of amplint.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from build_modules import module_classes

from amplint.infer.scenarios import DEFAULT_SCENARIOS, Scenario, find_scenario
from amplint.verify.build import CannotBuild, find_recipe
from amplint.verify.cell import evaluate, plan
from amplint.verify.job import CONFIRMING, MODES, Job
from amplint.verify.run import Where

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def main() -> int:
    """Run the benchmark; prints a line for each confirmed cell and the counts of all."""
    parser = argparse.ArgumentParser(description="What verify confirms in a library's modules.")
    parser.add_argument("library", help="the name of an importable package")
    parser.add_argument("--count", type=int, default=60, help="classes to draw (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
    parser.add_argument("--seconds", type=float, default=120, help="time limit of a class (default: 120)")
    parser.add_argument("--scenario", action="append", help="only this scenario; may be repeated")
    parser.add_argument("--only", default="", help="run only the drawn classes with this text in their name")
    chosen = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    scenarios = [s for n in chosen.scenario or [] if (s := find_scenario(n))] or list(DEFAULT_SCENARIOS)
    classes, _ = module_classes(chosen.library)
    drawn = sorted(random.Random(chosen.seed).sample(sorted(classes), min(chosen.count, len(classes))))
    ran, confirmed, counts, start = 0, 0, Counter[str](), time.monotonic()
    for name in (name for name in drawn if chosen.only in name):
        cells = _in_child(classes[name], scenarios, chosen.seconds)
        ran += bool(cells)
        counts.update(cell["kind"] for cell in cells)
        bad = [cell for cell in cells if cell["kind"] in CONFIRMING]
        confirmed += bool(bad)
        for cell in bad:
            where = f"{cell['location'][0]}:{cell['location'][1]}" if cell["location"] else "?"
            print(f"{name}: {cell['scenario']} {cell['mode']}: {cell['kind']}: {cell['error']} at {where}", flush=True)
    print(
        f"{chosen.library}: {ran} of {len(drawn)} ran, {confirmed} with something confirmed; "
        f"cells: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}; "
        f"{time.monotonic() - start:.0f} s"
    )
    return 0


def _in_child(target: type, scenarios: list[Scenario], seconds: float) -> list[dict[str, Any]]:
    """The outcomes of every cell that ended in time."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(target, scenarios, seconds, there))
    child.start()
    there.close()
    cells: list[dict[str, Any]] = []
    deadline = time.monotonic() + seconds
    try:
        while here.poll(max(0.0, deadline - time.monotonic())):
            cells.append(here.recv())
    except EOFError:
        pass
    child.kill()
    child.join()
    return cells


def _work(target: type, scenarios: list[Scenario], seconds: float, answer: Connection) -> None:
    with open(os.devnull, "w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        namespace = sys.modules[target.__module__]
        path = namespace.__file__ or ""
        job = Job(path, target.__name__, "cuda", "cpu", tuple(s.name for s in scenarios), results="", root="")
        where = Where("cuda", "cpu")
        with where.policy():
            try:
                recipe = find_recipe(target, namespace=namespace, deadline=time.monotonic() + 0.5 * seconds)
            except CannotBuild:
                return
            built = recipe.make()
            planned = [made for mode in MODES if (made := plan(recipe, built, mode, where)) is not None]
            for scenario in scenarios:
                for made in planned:
                    answer.send(evaluate(job, recipe, scenario, made, where, None)[0].to_json())


if __name__ == "__main__":
    sys.exit(main())
