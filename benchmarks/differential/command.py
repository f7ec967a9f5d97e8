"""Do models crash where amplint says, and only there?

    python benchmarks/differential [--library transformers|timm|diffusers|PACKAGE]...
                                   [--models llama,bert,...|random:COUNT]
                                   [--device cuda] [--by-scenario] [--runs FILE] [--json FILE]

Builds small, randomly initialised models without downloads (those of ``benchmarks/dtype_truth``), runs each forward
and backward in float32 and in every default scenario by CUDA's policy over CPU kernels, and checks the files that ran.
Prints each crash with the codes of the findings at its line, or *missed*, and each ``proven`` error whose line ran
clean in a scenario that it names: a false alarm. Crashes that only the CPU's kernels have are counted apart, and so
are those whose errors are not about dtypes, and those in backward passes, which have no line. A finding at a call
counts for a crash in another file that it names as a cause; a run that does not pass a finding's causes refutes
nothing.

Of any other installed PACKAGE, or a part of one such as ``diffusers.models``, every class of layers and autograd
Function runs alone, named ``package.file:Class``: blocks show what the arguments that a whole model gives them hide.

``--by-scenario`` asks ``amplint check`` for each scenario by itself, as somebody does who runs in it: by default it is
silent where operands differ only because a model is constructed under a 16-bit default dtype.

``--runs FILE`` keeps outcomes: what it has is not run again, and without ``--models`` it says what to judge.
Needs torch and the library; transformers is pinned to 5.23.0, diffusers to 0.36.0, timm to 1.0.31.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from children import answers
from dtype_truth.libraries import DEFAULT_MODELS
from dtype_truth.recording import known_models

from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from differential.judging import Judgement, findings
from differential.outcome import Outcome, load, save

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; prints crashes, refuted findings and their counts."""
    chosen = _options().parse_args(arguments)
    known = load(chosen.runs) if chosen.runs else {}
    libraries = chosen.library or sorted({library for library, _ in known}) or ["transformers"]
    everything = []
    for library in libraries:
        names = _models(library, chosen) if chosen.models or not known else [m for lib, m in known if lib == library]
        missing = [name for name in names if (library, name) not in known]
        for made in _outcomes(library, chosen.device, missing, chosen.seconds):
            print(f"ran {library} {made.model}: {made.error or f'{len(made.crashes)} crashes'}", file=sys.stderr)
            known[library, made.model] = made
            if chosen.runs:
                save(chosen.runs, known)
        outcomes = [known[library, name] for name in names]
        everything.append(_judge(library, outcomes, chosen.device, chosen.by_scenario))
    if chosen.json:
        chosen.json.write_text(json.dumps(everything, indent=1))
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="differential", description="Findings held against runs of real models.")
    named = ", ".join(sorted(DEFAULT_MODELS))
    parser.add_argument(
        "--library", action="append", metavar="NAME", help=f"{named}, or a package whose classes run one by one"
    )
    parser.add_argument(
        "--models",
        help="comma-separated names, or random:COUNT for a draw (default: a fixed list; all classes of a package)",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of a random draw (default: 1)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--by-scenario", action="store_true", help="ask amplint for each scenario by itself")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="keep outcomes here, and use those it has")
    parser.add_argument("--seconds", type=float, default=240, help="time limit of a model (default: 240)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what is printed as data")
    return parser


def _models(library: str, chosen: argparse.Namespace) -> list[str]:
    if not chosen.models:
        return list(DEFAULT_MODELS.get(library) or known_models(library))
    if not chosen.models.startswith("random:"):
        return list(chosen.models.split(","))
    names = known_models(library)
    return sorted(random.Random(chosen.seed).sample(names, min(int(chosen.models[7:]), len(names))))


def _outcomes(library: str, device: str, models: list[str], seconds: float) -> Iterator[Outcome]:
    for answer in answers("differential.run_child", [library, device], models, seconds):
        if answer.why:
            yield Outcome(library, answer.name, error=answer.why)
        else:
            yield Outcome.from_json(json.loads(answer.line))


def _judge(library: str, outcomes: list[Outcome], device: str, by_scenario: bool) -> dict[str, object]:
    ran = [one for one in outcomes if one.error is None]
    files = {file for one in ran for rows in one.clean.values() for file in rows}
    files |= {file for one in ran for crash in one.crashes for file, _ in crash.frames}
    root = Path(ran[0].root) if ran else Path()
    scenarios = [scenario.name for scenario in DEFAULT_SCENARIOS] if by_scenario else []
    judged = Judgement(library, ran, findings(root, files, device, scenarios) if files else ())
    failures = sorted(judged.failures, key=lambda one: (bool(one.found), one.place or ("", 0)))
    refuted = [*judged.refuted]
    print(f"{library}: {len(ran)} of {len(outcomes)} models ran, {len(files)} files of the package")
    for one in failures:
        place = f"{one.place[0]}:{one.place[1]}" if one.place else "in a backward pass"
        what = ", ".join(one.found) or ("missed" if one.place else "no line")
        print(f"  {what}: {place} {'/'.join(one.scenarios)} {'/'.join(one.modes)} ({_few(one.models)})")
        print(f"      {one.error}")
    for finding, scenario, models in refuted:
        print(f"  false alarm: {finding.code} {finding.file}:{finding.first} {scenario} ran clean ({_few(models)})")
        print(f"      {finding.message}")
    places: dict[tuple[str, int], bool] = {}
    for one in failures:
        if one.place:
            places[one.place] = places.get(one.place, True) and bool(one.found)
    alarms = {(finding.file, finding.first, finding.code) for finding, _, _ in refuted}
    gaps = sum(crash.gap for one in ran for crash in one.crashes)
    print(
        f"{library}: {sum(places.values())} of {len(places)} places that crash have a finding, "
        f"{sum(one.place is None for one in failures)} failures in backward passes; {len(alarms)} proven errors on "
        f"lines that ran clean; {gaps} runs stopped by gaps of the CPU, {len(judged.others)} by errors "
        "that are not about dtypes"
    )
    return {
        "library": library,
        "failures": [asdict(one) for one in failures],
        "refuted": [
            {**asdict(finding), "scenario": scenario, "models": models} for finding, scenario, models in refuted
        ],
    }


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
