"""Is what the inference says of random programs true?

    python benchmarks/soundness [--programs N] [--first SEED] [--jobs N] [--show SEED] [--figures]

Writes programs full of control flow and calls, runs each for real in every scenario with several answers of chance, and
records the dtype of every tensor that an expression gives. Each must be among those that are inferred for the
expression, or nothing is. Ends with status 1 where one is not.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import torch
from figures import results

from soundness.judging import Judged, judge
from soundness.writer import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMMAND = "python benchmarks/soundness --programs 20000 --figures"
ABOUT = "Random programs run for real: expressions whose dtype the inference knows, and those of which it says another."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print the counts and the first violations."""
    parser = argparse.ArgumentParser(prog="soundness", description="Is what is inferred of random programs true?")
    parser.add_argument("--programs", type=int, default=20_000, help="programs to draw (default: 20000)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--limit", type=int, default=20, help="violations to print (default: 20)")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the program of a seed and its violations")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        if chosen.show is not None:
            rows = enumerate(written(Random(chosen.show)).splitlines(), 1)
            print("\n".join(f"{row:4} {line}" for row, line in rows))
            seeds: Iterable[int] = [chosen.show]
        else:
            seeds = range(chosen.first, chosen.first + chosen.programs)
        judged = _judged(path, seeds, chosen.jobs)
    counts: Counter[str] = Counter()
    for one in judged:
        counts += one.counts
    violations = [violation for one in judged for violation in one.violations]
    for violation in violations[: chosen.limit]:
        at = ":".join(map(str, violation.position[:2]))
        had, said = ", ".join(sorted(violation.recorded)), ", ".join(violation.inferred)
        print(f"seed {violation.seed} {violation.scenario} {at} `{violation.text}` had {had}; inferred {said}")
    wrong = sum(bool(one.violations) for one in judged)
    total = counts.total()
    print(f"{len(judged)} programs, {total} expressions: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    print(f"known: {share(counts):.2%}; programs with a violation: {wrong}")
    if chosen.figures:
        seen = {"programs": len(judged), "expressions": total, "known": round(share(counts), 4), "violations": wrong}
        results.save("soundness", COMMAND, about=ABOUT, seen=seen)
    return 1 if wrong else 0


def share(counts: Counter[str]) -> float:
    """How many of the expressions that ran have a dtype that is known."""
    known = counts["exact"] + counts["among"] + counts["wrong"]
    return known / counts.total() if counts else 0.0


def _judged(path: Path, seeds: Iterable[int], jobs: int) -> list[Judged]:
    if jobs == 1:
        torch.set_num_threads(1)
        return [judge(path, seed) for seed in seeds]
    with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(partial(judge, path), seeds, chunksize=20))
