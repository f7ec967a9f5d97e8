"""Are the defects that amplint found in current releases real? Each is run.

    python benchmarks/found [--case NAME]... [--list] [--cases FOLDER] [--seconds S] [--runs FILE] [--write FILE]

A case is a file of ``cases/``: the smallest module or call that runs the line, built from the installed release with
random weights. It must run clean and finite in float32, and fail in its scenario (an error, inf or nan, or a loss that
rounding cannot explain; by CUDA's cast policy over CPU kernels, unless it says otherwise) at its line, and
``amplint check`` must report that line with that code. A case whose release is not installed in this interpreter is not
run, and not counted.

``--runs`` keeps results, and what it has shown of a case that is as it was is not run again: leave it out after a
change of amplint. ``--write`` writes the page ``docs/found.md``; every case has to be shown for that.

Leaves with status 1 where a case that was run does not show its defect, 2 where none could be run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from found import kept
from found.case import CASES, load
from found.page import page
from found.running import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from found.case import Case
    from found.outcome import Result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    cases = load(chosen.cases)
    unknown = sorted(set(chosen.case) - cases.keys())
    if unknown:
        parser.error(f"there is no case {', '.join(unknown)}; --list prints them")
    if chosen.write and chosen.case:
        parser.error("--write needs all cases: leave --case out")
    cases = {name: case for name, case in cases.items() if not chosen.case or name in chosen.case}
    width = max(map(len, cases), default=0)
    if chosen.list:
        for name, case in cases.items():
            print(f"{name:{width}} {case.requirement} {case.place} {case.code or 'unreported'} {case.scenario}")
        return 0
    before = kept.load(chosen.runs, chosen.cases) if chosen.runs else {}
    results = {name: result for name, result in before.items() if name in cases}
    for result in run(
        {name: case for name, case in cases.items() if name not in results}, chosen.cases, chosen.seconds
    ):
        results[result.name] = result
        code = cases[result.name].code or "unreported"
        print(f"{result.status:9} {result.name:{width}} {code:10} {result.text}", flush=True)
        if chosen.runs:
            kept.save(chosen.runs, chosen.cases, {**before, **results})
    print(_summary(cases, results))
    if chosen.write:
        return _write(chosen.write, cases, results)
    if all(result.status == "not run" for result in results.values()):
        return 2
    return 1 if any(result.status == "not shown" for result in results.values()) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="found", description="Defects found in current releases, shown by runs.")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only this one")
    parser.add_argument("--list", action="store_true", help="print the cases, and run none")
    parser.add_argument(
        "--cases", type=Path, default=CASES, metavar="FOLDER", help="of case files (default: the project's own)"
    )
    parser.add_argument("--seconds", type=float, default=180, metavar="S", help="time limit of a case (default: 180)")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="keep results there, and use what it has shown")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there")
    return parser


def _summary(cases: dict[str, Case], results: dict[str, Result]) -> str:
    counts = Counter(result.status for result in results.values())
    shown = [cases[name] for name, result in results.items() if result.status == "shown"]
    rules = {case.code for case in shown} - {None}
    return (
        f"{len(shown)} of {len(cases)} cases shown, in {len({case.package for case in shown})} packages, by "
        f"{len(rules)} rules; {counts['not shown']} not shown, {counts['not run']} not run"
    )


def _write(target: Path, cases: dict[str, Case], results: dict[str, Result]) -> int:
    lacking = [name for name, result in results.items() if result.status != "shown"]
    if lacking:
        print(f"not written: {', '.join(lacking)} would be lacking", file=sys.stderr)
        return 1
    target.write_text(page(cases, {name: result.text for name, result in results.items()}), encoding="utf-8")
    return 0
