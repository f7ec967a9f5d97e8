"""Real code that runs clean, broken as people break it: what amplint finds, and what it claims of what is harmless.

    python benchmarks/mutants [--half learned|kept] [--library NAME]... [--most N] [--wheels FOLDER] [--json FILE]
                              [--named] [--figures]
    python benchmarks/mutants --rows                      # of the learned half: each mutant and what was found
    python benchmarks/mutants --label NAME... [--mutants N] [--seconds S]
    python benchmarks/mutants --refresh [--library NAME]  # label them again, after what runs them was mended
    python benchmarks/mutants --again N                   # the same label on a second run?
    python benchmarks/mutants --cured [--most N] [--figures]
    python benchmarks/mutants --verify [--count N] [--seed S] [--figures]    # does verify confirm what raises?

The first needs no torch: it downloads the releases (or takes their wheels from FOLDER), breaks each file as its label
says, and checks it at default settings, or with every default scenario ``--named``; what the unbroken file already
gives does not count. A mutant that hurts in a scenario is found by a finding that names the scenario and lies at the
failing line or on the broken place, or has that place as a cause. At most N mutants of each operator in each half are
drawn, by a fixed seed. Each operator counts the same in the mean.

The others run code and need torch and the libraries. ``--label`` breaks a library's classes and functions at rows that
ran, runs original and mutant in float32 and in every default scenario, and appends a row for each mutant to
``labels/HALF/NAME.jsonl``. ``--cured`` applies ``--fix --unsafe-fixes`` to mutants that hurt and runs them again.
``--verify`` gives classes broken so that they raise to ``amplint verify``, which builds them by itself.

Of the kept half only figures are ever printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from halves import HALVES, LEARNED
from wheels import DownloadError, unpacked

from mutants import summary
from mutants.claims import Task, said
from mutants.draw import draw
from mutants.libraries import libraries
from mutants.rows import LABELS, files_of, load
from mutants.table import Tables, lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutants.rows import Original, Row

    Entry = TypeVar("Entry", Row, Original)

FOLDER = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for."""
    parser = _options()
    chosen = parser.parse_args(arguments)
    if chosen.figures and (chosen.half or chosen.library):
        parser.error("--figures are those of both halves")
    if chosen.figures and (chosen.label or chosen.again or chosen.refresh):
        parser.error("--figures are of the static side, of --cured or of --verify")
    keep = "--figures" if chosen.figures else ""
    if chosen.label:
        return _label(chosen)
    if chosen.again:
        return _run("mutants.repeat", [str(chosen.labels), str(chosen.again), *chosen.half])
    if chosen.refresh:
        return _run("mutants.refresh", [str(chosen.labels), *chosen.library])
    if chosen.cured:
        return _run("mutants.cured", [str(chosen.labels), str(chosen.most), keep, *chosen.half])
    if chosen.verify:
        drawn = [str(chosen.labels), str(chosen.count), str(chosen.seed), ",".join(chosen.library), keep]
        return _run("mutants.verified", [*drawn, *chosen.half])
    return _static(chosen)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--half", action="append", choices=HALVES, default=[], help="only this half")
    parser.add_argument("--library", action="append", default=[], metavar="NAME", help="only this library")
    parser.add_argument(
        "--most", type=int, default=40, metavar="N", help="mutants of an operator and half (default: 40)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--labels", type=Path, default=LABELS, metavar="FOLDER", help="where the labels lie")
    parser.add_argument(
        "--wheels", type=Path, metavar="FOLDER", help="take wheels from here instead of downloading them"
    )
    parser.add_argument("--named", action="store_true", help="name the scenarios, each of which is then meant")
    parser.add_argument("--rows", action="store_true", help="list the mutants of the learned half")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    parser.add_argument("--label", nargs="+", default=[], metavar="NAME", help="make labels for these libraries")
    parser.add_argument("--mutants", type=int, default=160, metavar="N", help="of a library (default: 160)")
    parser.add_argument("--seconds", type=float, default=600, metavar="S", help="for a library (default: 600)")
    parser.add_argument("--again", type=int, metavar="N", help="label N mutants a second time")
    parser.add_argument("--refresh", action="store_true", help="label all again, and keep that")
    parser.add_argument("--cured", action="store_true", help="apply the fixes and run")
    parser.add_argument("--verify", action="store_true", help="what verify confirms of mutants that raise")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="of each half, drawn (default: all)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of that draw (default: 1)")
    return parser


def _run(module: str, arguments: Sequence[str]) -> int:
    paths = os.pathsep.join(filter(None, (str(FOLDER.parent), str(FOLDER), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    return subprocess.run([sys.executable, "-m", module, *arguments], env=environment, check=False).returncode


def _label(chosen: argparse.Namespace) -> int:
    unknown = [name for name in chosen.label if name not in libraries()]
    if unknown:
        print(f"libraries.toml lacks {', '.join(unknown)}", file=sys.stderr)
        return 2
    status = 0
    for name in chosen.label:
        file = chosen.labels / libraries()[name].half / f"{name}.jsonl"
        status |= _run("mutants.label_library", [name, str(file), str(chosen.mutants), str(chosen.seconds)])
    return status


def _static(chosen: argparse.Namespace) -> int:
    start = time.monotonic()
    figures = {}
    counted: dict[str, Tables] = {}
    labelled: dict[str, int] = {}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for one in chosen.half or HALVES:
            loaded = [load(file) for file in files_of(one, chosen.labels)]
            rows = [row for found, _ in loaded for row in found if not chosen.library or row.library in chosen.library]
            originals = [o for _, found in loaded for o in found if not chosen.library or o.library in chosen.library]
            drawn = draw(rows, chosen.most)
            tables = counted[one] = Tables()
            labelled[one] = len(rows)
            made, lacking = _tasks(drawn, originals, Path(folder), chosen.wheels)
            tasks = [replace(task, named=chosen.named) for task in made]
            failed |= bool(lacking)
            for line in lacking:
                print(line, file=sys.stderr)
            by_path: dict[Path, list[Original]] = defaultdict(list)
            for path, original in _paths(originals, Path(folder)):
                by_path[path].append(original)
            for task, told in said(tasks, chosen.jobs):
                for row, new in zip(task.rows, told.new, strict=True):
                    tables.add(row, new)
                    if chosen.rows and one == LEARNED:
                        _print_row(row, [f"{c.code}@{c.first}({c.certainty})" for c in new])
                for original in by_path[task.path]:
                    tables.add_original(original, told.original)
                for failure in told.failures:
                    print(failure, file=sys.stderr)
            print(*lines(one, tables), f"  {len(drawn)} of {len(rows)} drawn", sep="\n")
            figures[one] = {
                "mutants": len(rows),
                "operators": {op: {sc: count.to_json() for sc, count in by.items()} for op, by in tables.cells.items()},
                "refuted": dict(tables.refuted),
            }
    print(f"{time.monotonic() - start:.0f} s")
    if chosen.figures:
        summary.keep(counted, labelled, named=chosen.named)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


def _paths(entries: Sequence[Entry], folder: Path) -> Iterator[tuple[Path, Entry]]:
    """Each entry with its file below the folder of unpacked releases."""
    for entry in entries:
        yield folder / f"{entry.library}-{entry.release}" / entry.file, entry


def _tasks(
    rows: Sequence[Row], originals: Sequence[Original], folder: Path, wheels: Path | None
) -> tuple[list[Task], list[str]]:
    """A task a file, and what could not be had."""
    lacking = []
    for requirement in sorted({f"{entry.library}=={entry.release}" for entry in (*rows, *originals)}):
        try:
            unpacked(requirement, folder, wheels)
        except DownloadError as error:
            lacking.append(str(error))
    grouped: dict[Path, list[Row]] = {path: [] for path, _ in _paths(originals, folder)}
    for path, row in _paths(rows, folder):
        grouped.setdefault(path, []).append(row)
    return [Task(path, tuple(found)) for path, found in grouped.items() if path.is_file()], lacking


def _print_row(row: Row, new: list[str]) -> None:
    places = " ".join(f"{e.row}:{e.column}" for e in row.edits)
    labels = " ".join(f"{scenario}={label['label']}" for scenario, label in row.labels.items())
    print(f"{row.library} {row.file}:{places} {row.operator} {labels} {' '.join(new) or '-'}")
