"""Are findings confirmed by a run of the code that they are in?

    python benchmarks/confirmed [--show OUTCOME]... [--figures]
    python benchmarks/confirmed --run [LIBRARY...] [--work FOLDER] [--seconds 60]

``--run`` takes the installed releases of ``releases.txt``, all or the named ones: each finding at default settings that
is an error, or a warning about overflow or underflow, is run by ``amplint verify``, which builds its class or function
by itself, in each scenario and mode, by CUDA's policy over CPU kernels. ``outcomes.jsonl`` keeps what came of each
finding in each scenario that it names; without ``--run`` the tables are printed from it, without torch:

- *confirmed*: it failed there;
- *ran and did not fail*: which counts against it, although other inputs might have failed (a warning needs large or
  small values);
- *something else failed first*, or *not reached* by what was built;
- *only the operation ran*: the class or function could not be built, and operands alone prove nothing, for amplint
  chose their dtypes;
- *not runnable*.

How far the judge is to be trusted is said last: what it makes of the findings that ``benchmarks/found`` shows to be
real, by runs that somebody built.

A run goes on where it was interrupted, if amplint is the same: ``--work`` keeps what verify answered. Libraries of the
half that is kept back are counted apart and never listed: amplint is not mended by them.

Leaves with status 1 where a library could not be run, 2 where none could.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem.releases import listed
from figures import results

from confirmed import table
from confirmed.outcome import HERE, OUTCOME, OUTCOMES, OutcomesError, at_first_sight, load, save
from confirmed.running import RunError, Work, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confirmed.outcome import Library, Outcome

COMMAND = "python benchmarks/confirmed --run\npython benchmarks/confirmed --figures"
ABOUT = (
    "Errors, and warnings about overflow and underflow, in installed libraries: what `amplint verify` makes of them. "
    "*confirmed of decided* leaves out what no run could decide; *known to be real* are those of [found](found.md)."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run libraries or print the tables, and say the exit status."""
    chosen = _options().parse_args(arguments)
    try:
        if chosen.run is not None:
            return _run(chosen)
        libraries, outcomes = load(chosen.outcomes)
    except OutcomesError as error:
        print(error, file=sys.stderr)
        return 2
    if not libraries:
        print("there are no outcomes yet: --run makes them", file=sys.stderr)
        return 2
    for outcome in chosen.show:
        for one in (one for one in outcomes if one.outcome == outcome and not at_first_sight(one.library)):
            print(f"{outcome}: {one.library} {one.path}:{one.line} {one.code} {one.scenario} {one.error}")
    print("\n".join(table.lines(libraries, outcomes)))
    return _keep(libraries, outcomes) if chosen.figures else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="confirmed", description="Findings in installed libraries, judged by runs.")
    parser.add_argument("--run", nargs="*", metavar="LIBRARY", help="run these of the list (none named: all)")
    parser.add_argument(
        "--list", type=Path, default=HERE / "releases.txt", metavar="FILE", help="of name==version lines"
    )
    parser.add_argument("--outcomes", type=Path, default=OUTCOMES, metavar="FILE", help="(default: the project's own)")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amplint-confirmed"
    parser.add_argument("--work", type=Path, default=cache, metavar="FOLDER", help=f"(default: {cache})")
    parser.add_argument("--seconds", type=float, default=60, help="time limit of a target (default: 60)")
    parser.add_argument("--show", action="append", default=[], choices=OUTCOME, help="list these, one a line")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    return parser


def _run(chosen: argparse.Namespace) -> int:
    """Run libraries, each of which takes the place of what was kept of it."""
    releases = [one for one in listed(chosen.list) if not chosen.run or one.package in chosen.run]
    unknown = sorted(set(chosen.run) - {one.package for one in releases})
    if unknown:
        raise OutcomesError(f"{chosen.list} does not list {', '.join(unknown)}")
    lacking = 0
    for release in releases:
        try:
            library, found = run(release, Work(chosen.work, chosen.seconds), lambda text: print(text, file=sys.stderr))
        except RunError as error:
            print(error, file=sys.stderr)
            lacking += 1
            continue
        libraries, outcomes = load(chosen.outcomes)
        libraries = [one for one in libraries if one.library != release.package] + [library]
        outcomes = [one for one in outcomes if one.library != release.package] + found
        save(libraries, outcomes, chosen.outcomes)
        counted = table.findings(found)
        print(f"{release}: " + (", ".join(f"{n} {name}" for name, n in counted.counts.items()) or "nothing to run"))
    return (2 if lacking == len(releases) else 1) if lacking else 0


def _keep(libraries: Sequence[Library], outcomes: Sequence[Outcome]) -> int:
    versions = {one.amplint for one in libraries}
    if len(versions) != 1:
        print(f"not kept: the outcomes are of {', '.join(sorted(versions))}; run all with one", file=sys.stderr)
        return 1
    shown = {side: table.figures(count, rows) for side, count, rows in table.sides(libraries, outcomes)}
    results.save(
        "confirmed", COMMAND, about=ABOUT, seen=shown["seen"], first_sight=shown["first_sight"], of=versions.pop()
    )
    return 0
