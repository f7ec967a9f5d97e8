"""What each doubt of the table costs and saves, on findings of which it is known whether they are right.

    python benchmarks/doubts [--wheels FOLDER] [--most N] [--jobs N] [--only judged|mutants|releases]… [--figures]

Needs no torch. Labelled are the findings of ``benchmarks/judged`` that amplint still makes, told or not, those of its
fresh rounds among them, and what it says of up to N mutants of each operator of ``benchmarks/mutants``, all of the
learned half. Then come whole releases, whose findings nobody judged: those of ``benchmarks/ecosystem``, of the fresh
rounds and in FOLDER. Releases come from the wheels in FOLDER alone, or are downloaded where none is given. amplint runs
once, with what doubts hide or drop shown. For each doubt: on how many labelled findings it held; how many would be told
(or proven, of a doubt that leaves a claim likely) were it switched off alone; of these how many are right, wrong and
arguable, by package; how many findings of whole releases it decides so; and in how many packages it decides what is not
known to be right.

Most judged findings were told when they were drawn, and some doubts were written for them: those rows speak for a doubt
more than they should. For which rows a doubt was written is recorded nowhere.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from figures.results import save

from doubts.labelled import Shelf, of_mutants, of_readers
from doubts.table import figures, lines
from doubts.unlabelled import of_releases

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = ("judged", "mutants", "releases")
ABOUT = (
    "What each doubt costs and saves on findings of the learned halves of which it is known whether they are right: "
    "*alone* are those that this doubt alone hides, or keeps from being proven. *Decides unjudged* are such findings "
    "in whole releases, *in packages* where it decides what is not known to be right; *so* is what all that says of it."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="doubts", description="What each doubt costs and saves.")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="take wheels from here alone")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="mutants of an operator (default: 20)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    parser.add_argument("--only", choices=SOURCES, action="append", help="only these findings")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="doubts-") as folder:
        shelf = Shelf(Path(folder), chosen.wheels)
        sources = chosen.only or SOURCES
        found = list(of_readers(shelf)) if "judged" in sources else []
        found += of_mutants(shelf, chosen.most, chosen.jobs) if "mutants" in sources else []
        found += of_releases(shelf, chosen.wheels) if "releases" in sources else []
        print("\n".join(lines(found)))
    if chosen.figures:
        only = "".join(f" --only {name}" for name in chosen.only or ())
        most = f" --most {chosen.most}" if "mutants" in sources else ""
        save("doubts", f"python benchmarks/doubts{only}{most} --figures", about=ABOUT, seen=figures(found))
    if shelf.lacking:
        print(f"left out, since they are not there: {', '.join(sorted(shelf.lacking))}", file=sys.stderr)
    return 0
