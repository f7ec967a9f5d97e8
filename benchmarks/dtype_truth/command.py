"""Are the inferred dtypes those that torch computes?

    python benchmarks/dtype_truth [--library transformers|timm|diffusers] [--models llama,bert,...]
                                  [--scenario NAME]... [--device cpu|cuda]... [--truth FILE]
                                  [--show wrong|unknown|partial [--roots] [--limit N]] [--json FILE] [--figures]

Builds small, randomly initialised models without downloads, runs each once in eval mode, records the dtype of every
floating-point value that torch gives to an expression of the library's code, by exact span, and compares it with what
``amplint dtypes`` says of that span (inferred in this process, with the function that the command calls). Without
``--scenario``: ``autocast-bf16`` on cpu, the same on cuda by CUDA's policy over CPU kernels, and ``bf16``.

A row is *exact* (one dtype, the right one), *partial* (several, the right one among them), *unknown*, or *wrong*.
Expressions that had several dtypes in one run are left out. Files: *own* is the one that defines the model's class,
*other* the rest of the library's package.

``--truth FILE`` keeps recordings: what it has is not run again, and without ``--models`` it says what to compare.
``--figures`` keeps the figures of a library's fixed list of models for ``docs/figures.md``.
Needs Python 3.11, torch and the library; transformers is pinned to 5.23.0.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import results

from amplint.infer.lattice.scenarios import find_scenario, scenario_names
from dtype_truth import table
from dtype_truth.compare import Compared, Inference, compare, tasks
from dtype_truth.libraries import DEFAULT_MODELS
from dtype_truth.listing import Listing
from dtype_truth.recording import known_models, record
from dtype_truth.truth import Case, Recording, load, save

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMAND = "python benchmarks/dtype_truth --library {} --figures"
ABOUT = "Inferred dtypes beside those that torch computes, in small models of {}: one right, several, unknown, wrong."
DEFAULT_WAYS = (("autocast-bf16", "cpu"), ("autocast-bf16", "cuda"), ("bf16", "cpu"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; prints the table, or the rows asked for and the table."""
    if sys.version_info < (3, 11):
        print("dtype_truth needs Python 3.11 or later: older ones keep no column positions", file=sys.stderr)
        return 2
    parser = _options()
    chosen = parser.parse_args(arguments)
    if chosen.figures and (chosen.truth or chosen.models or chosen.scenario or chosen.device or chosen.calls):
        parser.error("--figures are those of the fixed list of models")
    recordings = _recordings(chosen)
    inference = Inference(tasks(recordings), chosen.jobs)
    for task, failure in inference.failures.items():
        print(f"inference failed: {task.path} {task.scenario}/{task.device}: {failure}", file=sys.stderr)
    compared = list(compare(recordings, inference, calls=chosen.calls))
    if chosen.json:
        chosen.json.write_text(json.dumps([_row(one) for one in compared], indent=0))
    if chosen.show:
        rows = [one for one in compared if _is_shown(one, chosen)]
        listing = Listing(next((made.root for made in recordings if made.root), ""), chosen.limit)
        print("\n".join(listing.roots(rows, compared, inference) if chosen.roots else listing.rows(rows)))
    print("\n".join(table.lines(recordings, compared, models=not chosen.show)))
    if chosen.figures:
        about, command = ABOUT.format(chosen.library), COMMAND.format(chosen.library)
        results.save(f"dtype-truth-{chosen.library}", command, about=about, seen=table.figures(compared))
    return 0


def _is_shown(one: Compared, chosen: argparse.Namespace) -> bool:
    return (
        chosen.show in (one.verdict, "no-row" if one.inferred is None else "")
        and (one.own or not chosen.own)
        and chosen.only in str(one.path)
    )


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dtype_truth", description="Inferred dtypes beside those that torch computes."
    )
    parser.add_argument("--library", choices=sorted(DEFAULT_MODELS), default="transformers")
    parser.add_argument("--models", help="comma-separated names, or random:COUNT for a draw (default: a fixed list)")
    parser.add_argument("--seed", type=int, default=1, help="seed of a random draw (default: 1)")
    parser.add_argument("--scenario", action="append", choices=scenario_names(), metavar="NAME")
    parser.add_argument("--device", action="append", choices=("cpu", "cuda"), help="with --scenario (default: both)")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="keep recordings here, and use those it has")
    parser.add_argument("--seconds", type=float, default=120, help="time limit of a model (default: 120)")
    parser.add_argument("--calls", action="store_true", help="count what calls of the library's own code give, too")
    parser.add_argument("--show", choices=("wrong", "unknown", "partial", "no-row"), help="list rows of this verdict")
    parser.add_argument("--roots", action="store_true", help="list where the inference first goes astray instead")
    parser.add_argument("--own", action="store_true", help="list only rows of the files that define the models")
    parser.add_argument("--only", default="", metavar="TEXT", help="list only rows of files with this in their path")
    parser.add_argument("--jobs", type=int, default=1, help="processes for the inference (default: 1)")
    parser.add_argument("--limit", type=int, default=40, help="expressions to list (default: 40)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all compared rows")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    return parser


def _recordings(chosen: argparse.Namespace) -> list[Recording]:
    known = load(chosen.truth) if chosen.truth else {}
    ways = _ways(chosen)
    if known and not chosen.models:
        return [made for case, made in known.items() if not chosen.scenario or (case.scenario, case.device) in ways]
    models = _models(chosen)
    for scenario, device in ways:
        cases = {name: Case(chosen.library, name, scenario, device) for name in models}
        missing = [name for name, case in cases.items() if case not in known or known[case].error]
        for made in record(chosen.library, scenario, device, missing, chosen.seconds) if missing else ():
            known[made.case] = made
            if chosen.truth:
                save(chosen.truth, known)
    return [known[Case(chosen.library, name, *way)] for name in models for way in ways]


def _ways(chosen: argparse.Namespace) -> list[tuple[str, str]]:
    if not chosen.scenario:
        return [way for way in DEFAULT_WAYS if not chosen.device or way[1] in chosen.device]
    names = [scenario.name for name in chosen.scenario if (scenario := find_scenario(name))]
    return [(name, device) for name in names for device in chosen.device or ("cpu", "cuda")]


def _models(chosen: argparse.Namespace) -> list[str]:
    if not chosen.models:
        return list(DEFAULT_MODELS[chosen.library])
    if not chosen.models.startswith("random:"):
        return list(chosen.models.split(","))
    names = known_models(chosen.library)
    return sorted(random.Random(chosen.seed).sample(names, min(int(chosen.models[7:]), len(names))))


def _row(one: Compared) -> dict[str, Any]:
    row, column, end_row, end_column = one.truth.position
    return {
        **asdict(one.case),
        "filename": str(one.path),
        "location": {"row": row, "column": column},
        "end_location": {"row": end_row, "column": end_column},
        "own": one.own,
        "torch": one.truth.torch,
        "count": one.truth.count,
        "true": one.truth.dtype,
        "row": one.inferred is not None,
        "inferred": one.inferred.dtypes if one.inferred is not None else None,
        "verdict": one.verdict,
    }
