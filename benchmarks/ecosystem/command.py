"""What does amplint say of the packages that people use, and does a change of it make it say more?

    python benchmarks/ecosystem [--cache FOLDER] [--sources FOLDER]... [--package NAME]... [--jobs N]
                                [--extend-select RULES]... [--json FILE] [--read FILE] [--against FILE]
                                [--draw N --seed S --rows FILE] [--figures]

``releases.txt`` pins releases of the package index. Each is downloaded as a wheel, without its dependencies, into the
cache and unpacked there; nothing is installed or run. One ``amplint check`` at default settings judges each.

``--json`` keeps the result. ``--against`` prints what changed since a result that was kept; ``--read`` takes a kept
result in the place of a run. ``--draw`` writes findings drawn at random, to be judged. ``--figures`` keeps the figures
of a run of the whole list for ``docs/figures.md``.

Leaves with status 1 where a release could not be had or amplint failed on it, 2 where that is all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from figures import results
from wheels import DownloadError

from ecosystem import difference, drawing, table
from ecosystem.checking import CheckError, check
from ecosystem.releases import LIST, Shelf, listed
from ecosystem.result import ResultError, load, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ecosystem.result import Checked

COMMAND = "python benchmarks/ecosystem --figures"
ABOUT = "Findings at default settings in pinned releases of the packages that people use, AMP6xx counted apart."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if (chosen.draw is None) != (chosen.rows is None):
        parser.error("--draw and --rows go together")
    if chosen.draw is not None and chosen.draw < 1:
        parser.error("--draw takes a number from 1")
    if chosen.figures and (chosen.read or chosen.package or chosen.extend_select):
        parser.error("--figures are those of a run of the whole list at default settings")
    lacking: list[str] = []
    try:
        before = _load(chosen.against, chosen.package) if chosen.against else None
        checked = _load(chosen.read, chosen.package) if chosen.read else _run(chosen, lacking)
    except (ResultError, SelectionError) as error:
        print(error, file=sys.stderr)
        return 2
    for line in lacking:
        print(line, file=sys.stderr)
    if not checked:
        print("no release is left", file=sys.stderr)
        return 2
    print("\n".join(table.lines(checked)))
    if before is not None:
        print("", *difference.lines(before, checked), sep="\n")
    if chosen.json:
        save(checked, chosen.json)
    if chosen.rows:
        drawing.save(drawing.draw(checked, chosen.draw, chosen.seed), chosen.rows)
    if chosen.figures and not lacking:
        results.save("ecosystem", COMMAND, about=ABOUT, seen=table.figures(checked))
    return 1 if lacking else 0


class SelectionError(Exception):
    """A package was asked for that is not in the list."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ecosystem", description="Findings in released packages.")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amplint-ecosystem"
    parser.add_argument("--cache", type=Path, default=cache, metavar="FOLDER", help=f"(default: {cache})")
    parser.add_argument(
        "--sources",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="where releases lie unpacked already: NAME-VERSION folders, or a site-packages folder",
    )
    parser.add_argument(
        "--list", type=Path, default=LIST, metavar="FILE", help="of name==version lines (default: the project's own)"
    )
    parser.add_argument("--package", action="append", default=[], metavar="NAME", help="only this one of the list")
    parser.add_argument(
        "--extend-select", action="append", default=[], metavar="RULES", help="besides those on by default"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each CPU)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the result there")
    parser.add_argument("--read", type=Path, metavar="FILE", help="take this kept result, and run nothing")
    parser.add_argument("--against", type=Path, metavar="FILE", help="print what changed since this kept result")
    parser.add_argument("--draw", type=int, metavar="N", help="draw findings to be judged: rules and packages in turn")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of --draw (default: 0)")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="where --draw writes, one JSON object a line")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    return parser


def _load(path: Path, packages: Sequence[str]) -> list[Checked]:
    """A kept result, of some packages only where any are named. Raises ResultError."""
    return [one for one in load(path) if not packages or one.release.package in packages]


def _run(chosen: argparse.Namespace, lacking: list[str]) -> list[Checked]:
    """Check the releases; ``lacking`` gets a text for each that could not be. Raises SelectionError."""
    releases = listed(chosen.list)
    unknown = sorted(set(chosen.package) - {release.package for release in releases})
    if unknown:
        raise SelectionError(f"{chosen.list} does not list {', '.join(unknown)}")
    shelf = Shelf(chosen.cache.resolve(), [folder.resolve() for folder in chosen.sources])
    checked: list[Checked] = []
    for release in releases:
        if chosen.package and release.package not in chosen.package:
            continue
        try:
            checked.append(check(release, shelf.folder(release), chosen.jobs, chosen.extend_select))
        except (DownloadError, CheckError) as error:
            lacking.append(str(error))
        except OSError as error:
            lacking.append(f"{release}: {error}")
        else:
            print(f"{release}: {len(checked[-1].findings)} findings, {checked[-1].wall:.1f} s", file=sys.stderr)
    return checked
