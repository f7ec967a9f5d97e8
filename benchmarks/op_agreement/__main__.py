"""What the inference says of torch's own samples, beside what torch gives.

``python benchmarks/op_agreement [--only NAME ...] [--sample N --seed S] [--wrong]`` takes the samples of every OpInfo
under each public name of the operation and of every ModuleInfo, in many dtypes and pairs of dtypes, runs them without
autocast, under the CPU's and under CUDA's policy over CPU kernels, and compares with ``amplint dtypes``'s inference on
the same call written as a program. Ends with status 1 where the inference is wrong about any.

Calls that torch rejects are left out: whether operands that disagree are found is another question.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import warnings
from collections import Counter, defaultdict
from typing import Any

import torch
from calls import Case, layer_cases, opinfo_cases, opinfo_names, opinfo_samples
from programs import NoSource, Written, inferred, judge, written
from torch.testing._internal.common_modules import module_db

from amplint.emulation import install
from amplint.infer.torch_model.torch_ops import find_op

VERDICTS = ("exact", "partial", "unknown", "wrong")
Result = dict[str, tuple[str, str, str]]
"""By name of the callable and verdict: counts; and an example of each."""


def cases_of(name: str, ops: list[Any] | None) -> list[Case]:
    """All cases of one name."""
    if ops is None:
        return list(layer_cases(name))
    return list(opinfo_cases(name, ops, opinfo_samples))


def compare(names: dict[str, list[Any] | None], regimes: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
    """(name, regime, verdict, example) of every call that runs."""
    found = []
    for name, ops in names.items():
        seen: dict[tuple[str, Written], Any] = {}
        for case in cases_of(name, ops):
            try:
                program = written(case)
            except NoSource:
                continue
            for regime in regimes:
                if (regime, program) in seen:
                    continue
                if regime == "none":
                    outcome = case.run()
                else:
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        outcome = case.run()
                seen[regime, program] = outcome
        for regime in regimes:
            kept = [(p, outcome) for (r, p), outcome in seen.items() if r == regime and outcome is not None]
            for (program, outcome), said in zip(kept, inferred(kept, regime), strict=True):
                verdict = judge(outcome, said)
                found.append((name, regime, verdict, f"{'; '.join(program.lines)} -> {outcome}, inferred {said}"))
    return found


def _child(names: dict[str, list[Any] | None], regimes: tuple[str, ...], queue: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if "cuda" in regimes:
        install("cuda")
    queue.put(compare(names, regimes))


def run(names: dict[str, list[Any] | None]) -> list[tuple[str, str, str, str]]:
    """Each regime in a process of its own: the emulation of CUDA's policy does not come off again."""
    context = multiprocessing.get_context("fork")
    found = []
    children = []
    for regimes in (("none", "cpu"), ("cuda",)):
        queue = context.Queue()
        child = context.Process(target=_child, args=(names, regimes, queue))
        child.start()
        children.append((child, queue))
    for child, queue in children:
        found += queue.get()
        child.join()
    return found


def main() -> int:
    """Compare, print the counts, and each kind of disagreement once for each name."""
    parser = argparse.ArgumentParser(description="Compare the inference with torch on torch's own samples.")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many names, drawn by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", nargs="*", default=["wrong"], choices=VERDICTS, help="verdicts shown by example")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names: dict[str, list[Any] | None] = {**opinfo_names()}
    names |= {f"torch.nn.{info.module_cls.__name__}": None for info in module_db if public_layer(info.module_cls)}
    if options.only:
        names = {name: ops for name, ops in names.items() if name in options.only}
    elif options.sample:
        drawn = set(random.Random(options.seed).sample(sorted(names), options.sample))
        names = {name: ops for name, ops in names.items() if name in drawn}
    found = run(names)
    report(names, found, options.show)
    return int(any(verdict == "wrong" for _, _, verdict, _ in found))


def public_layer(cls: type) -> bool:
    """Whether a class is found in ``torch.nn`` under its own name."""
    return getattr(torch.nn, cls.__name__, None) is cls


def report(names: dict[str, Any], found: list[tuple[str, str, str, str]], shown: list[str]) -> None:
    """Counts by regime, what is not in the table, and one example for each name and verdict asked for."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[tuple[str, str], list[str]] = {}
    for name, regime, verdict, example in found:
        counts[regime][verdict] += 1
        examples.setdefault((verdict, name), []).append(f"[{regime}] {example}")
    for (verdict, name), texts in sorted(examples.items()):
        if verdict in shown:
            print(f"{verdict} {name} ({len(texts)}): {texts[0]}")
    ran = {name for name, _, _, _ in found}
    print(f"{len(names)} names, {len(ran)} with a call that runs, torch {torch.__version__}")
    missing = sorted(name for name in ran if names[name] is not None and find_op(name) is None)
    print(f"not in the table: {len(missing)} {' '.join(missing)}")
    for regime, counted in counts.items():
        total = sum(counted.values())
        print(
            f"{regime}: {total} calls, " + ", ".join(f"{v} {counted[v]} ({counted[v] / total:.2%})" for v in VERDICTS)
        )


if __name__ == "__main__":
    sys.exit(main())
