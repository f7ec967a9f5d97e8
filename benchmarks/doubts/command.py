"""What each doubt of the table costs and saves, on findings of which it is known whether they are right.

    python benchmarks/doubts [--wheels FOLDER] [--most N] [--jobs N] [--only judged|mutants]

Needs no torch. The findings are those of ``benchmarks/judged`` that amplint still makes, told or not, and what it says
of up to N mutants of each operator of ``benchmarks/mutants``; all of the learned half. Releases come from the wheels in
FOLDER alone, or are downloaded where none is given. amplint runs once, with what doubts hide or drop shown. For each
doubt: on how many labelled findings it held; how many would be told (or proven, of a doubt that leaves a claim likely)
were it switched off alone; and of these how many are right, wrong and arguable, by package.

Most judged findings were told when they were drawn, and some doubts were written for them: those rows speak for a doubt
more than they should.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from doubts.labelled import Shelf, of_mutants, of_readers
from doubts.table import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = ("judged", "mutants")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="doubts", description="What each doubt costs and saves.")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="take wheels from here alone")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="mutants of an operator (default: 20)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--only", choices=SOURCES, help="only these labels")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="doubts-") as folder:
        shelf = Shelf(Path(folder), chosen.wheels)
        labelled = list(of_readers(shelf)) if chosen.only != "mutants" else []
        if chosen.only != "judged":
            labelled += of_mutants(shelf, chosen.most, chosen.jobs)
        print("\n".join(lines(labelled)))
    if shelf.lacking:
        print(f"left out, since they are not there: {', '.join(sorted(shelf.lacking))}", file=sys.stderr)
    return 0
