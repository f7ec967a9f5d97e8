"""What does verify confirm in modules that nobody complains of?

    python benchmarks/verify_modules.py LIBRARY [--count 60] [--seed 1] [--scenario NAME]…
    python benchmarks/verify_modules.py --draw-libraries 4 --seed S [--large] [--figures]
    python benchmarks/verify_modules.py --read LIBRARY=WRONG... [--figures]

Draws classes as ``build_modules.py`` does, runs each that can be built in every scenario and mode by CUDA's policy over
CPU kernels, and prints everything that is confirmed, to be looked at: each is a defect of the module or of amplint.

The second form draws libraries from ``verify_pool.txt``, with ``--large`` only those of about 60 classes or more, and
prints the median of the shares that ran. It marks them there, so that another seed draws others, and keeps what it
found out in ``verify_modules.jsonl``, a library's first run apart. The third says how many of the classes confirmed in
a library's last run are amplint's error, by a reader's judgement. ``--figures`` keeps all that for ``docs/figures.md``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import inspect
import itertools
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
import verify_kept as kept
from build_modules import drawn_from, module_classes
from figures import results
from verify_pool import POOL, draw_libraries, importable

from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS, Scenario, find_scenario
from amplint.verify.build import CannotBuild, Deadline, find_recipe, variants
from amplint.verify.cell import evaluate, plan
from amplint.verify.described import built_text
from amplint.verify.job import CLEAN, CONFIRMING, MODES, Job
from amplint.verify.run import Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from amplint.verify.build import Recipe


def main() -> int:
    """Run the benchmark; prints a line for each confirmed cell and the counts of all."""
    parser = argparse.ArgumentParser(description="What verify confirms in a library's modules.")
    parser.add_argument("library", nargs="?", help="the name of an importable package")
    parser.add_argument("--draw-libraries", type=int, default=0, metavar="N", help="draw N from verify_pool.txt")
    parser.add_argument("--count", type=int, default=60, help="classes to draw (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
    parser.add_argument("--seconds", type=float, default=120, help="time limit of a class (default: 120)")
    parser.add_argument("--scenario", action="append", help="only this scenario; may be repeated")
    parser.add_argument("--large", action="store_true", help="draw only large libraries")
    parser.add_argument("--read", nargs="+", type=_reading, default=[], metavar="LIBRARY=WRONG", help="after reading")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    parser.add_argument("--only", default="", help="run only the drawn classes with this text in their name")
    chosen = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    scenarios = [s for n in chosen.scenario or [] if (s := find_scenario(n))] or list(DEFAULT_SCENARIOS)
    asked = (chosen.library, chosen.draw_libraries, chosen.read)
    if sum(map(bool, asked)) > 1 or not (any(asked) or chosen.figures):
        parser.error("name one LIBRARY, draw with --draw-libraries, or say with --read what was wrong")
    if chosen.library:
        _run_library(chosen.library, chosen, scenarios)
    if chosen.draw_libraries:
        names = draw_libraries(POOL, chosen.draw_libraries, chosen.seed, large=chosen.large)
        missing = [name for name in names if not importable(name)]
        if missing:
            parser.error(f"drawn and not installed: pip install {' '.join(missing)}")
        _run_drawn(names, chosen, scenarios)
    for name, wrong in chosen.read:
        if not kept.read(name, wrong):
            parser.error(f"{name} was never run by --draw-libraries")
    if chosen.figures:
        kept.save_figures(kept.load())
    return 0


def _reading(text: str) -> tuple[str, int]:
    library, _, wrong = text.rpartition("=")
    return library, int(wrong)


@dataclass(frozen=True)
class Counts:
    """How many classes of a library were drawn, ran, and had something confirmed."""

    drawn: int
    ran: int
    confirmed: int


def _run_drawn(names: list[str], chosen: argparse.Namespace, scenarios: list[Scenario]) -> None:
    """Run drawn libraries and keep what came of each, where nothing was left out."""
    shares = []
    for name in names:
        counts = _run_library(importable(name)[0], chosen, scenarios)
        shares.append(counts.ran / max(counts.drawn, 1))
        if not chosen.only and not chosen.scenario:
            kept.keep(_row(name, chosen, counts))
    print(f"{', '.join(names)}: median of the shares that ran {statistics.median(shares):.0%}")


def _row(name: str, chosen: argparse.Namespace, counts: Counts) -> kept.Row:
    return kept.Row(
        chosen.seed,
        name,
        importlib.metadata.version(name),
        results.version(),
        results.today(),
        chosen.seconds,
        counts.drawn,
        counts.ran,
        counts.confirmed,
        first_sight=False,
    )


def _run_library(library: str, chosen: argparse.Namespace, scenarios: list[Scenario]) -> Counts:
    classes, _ = module_classes(library)
    drawn, abstract = drawn_from(classes, chosen.count, chosen.seed)
    ran, confirmed, counts, start = 0, 0, Counter[str](), time.monotonic()
    for name in (name for name in drawn if chosen.only in name):
        cells, why = _in_child(classes[name], scenarios, chosen.seconds)
        if not cells:
            print(f"{name}: not run: {why}", flush=True)
        ran += bool(cells)
        counts.update(cell["kind"] for cell in cells)
        bad = [cell for cell in cells if cell["kind"] in CONFIRMING]
        confirmed += bool(bad)
        for line in _told(name, bad):
            print(line, flush=True)
    print(
        f"{library}: {ran} of {len(drawn)} ran, {confirmed} with something confirmed; "
        f"{abstract} abstract ones passed over; "
        f"cells: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}; "
        f"{time.monotonic() - start:.0f} s",
        flush=True,
    )
    return Counts(len(drawn), ran, confirmed)


def _told(name: str, cells: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each place at which cells failed, with what was built and passed in the first of them."""
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        where = f"{cell['location'][0]}:{cell['location'][1]}" if cell["location"] else "?"
        places.setdefault((cell["kind"], where), []).append(cell)
    for (kind, where), there in places.items():
        scenarios = ", ".join(dict.fromkeys(cell["scenario"] for cell in there))
        first = there[0]
        yield f"{name}: {scenarios}: {kind}: {first['error']} at {where}"
        yield f"    {first['built']} with {first['inputs']}" + (f" ({first['variant']})" if first["variant"] else "")


def _in_child(target: type, scenarios: list[Scenario], seconds: float) -> tuple[list[dict[str, Any]], str]:
    """The outcomes of every cell that ended in time, and why there are none."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(target, scenarios, seconds, there))
    child.start()
    there.close()
    cells: list[dict[str, Any]] = []
    why = f"nothing within {2 * seconds:.0f} s"
    deadline = time.monotonic() + 2 * seconds  # a busy machine is no reason
    try:
        while here.poll(max(0.0, deadline - time.monotonic())):
            answer = here.recv()
            if isinstance(answer, str):
                why = answer
            else:
                cells.append(answer)
    except EOFError:
        pass
    child.kill()
    child.join()
    return cells, why


def _work(target: type, scenarios: list[Scenario], seconds: float, answer: Connection) -> None:
    with open(os.devnull, "w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        namespace = sys.modules[target.__module__]
        path = namespace.__file__ or ""
        job = Job(path, target.__name__, "cuda", "cpu", tuple(s.name for s in scenarios), results="", root="")
        where = Where("cuda", "cpu")
        end = Deadline.after(0.7 * seconds)
        with where.policy():
            try:
                recipe = find_recipe(target, namespace=namespace, deadline=Deadline.after(0.5 * seconds))
            except CannotBuild as error:
                answer.send(error.reason)
                return
            for label, made, whole in itertools.chain([("", recipe, False)], _others(recipe, end)):
                text, built = built_text(made), made.make()
                planned = [one for mode in MODES if (one := plan(made, built, mode, where)) is not None]
                for scenario, one in itertools.product(scenarios, planned):
                    outcome = evaluate(job, made, scenario, one, where, None, label)[0]
                    if label and outcome.kind not in (CLEAN, *CONFIRMING):
                        continue  # a variant that fails by itself says nothing of the class
                    if not whole or (outcome.location and _inside(target, outcome.location)):
                        answer.send(replace(outcome, built=text).to_json())


def _others(recipe: Recipe, end: Deadline) -> Iterator[tuple[str, Recipe, bool]]:
    for variant in variants(recipe, (), end):
        yield variant.label, variant.recipe, variant.whole


def _inside(target: type, location: tuple[str, int]) -> bool:
    lines, first = inspect.getsourcelines(target)
    same = os.path.realpath(inspect.getsourcefile(target) or "") == os.path.realpath(location[0])
    return same and first <= location[1] < first + len(lines)


if __name__ == "__main__":
    sys.exit(main())
