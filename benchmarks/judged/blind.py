"""How often is amplint right on packages that nobody had looked at?

    python benchmarks/judged --fresh [--drawn NAME] [--figures]
    python benchmarks/judged --fresh --draw FOLDER [--count 120] [--packages 40] [--most 5] [--seed S] [--drawn NAME]
                                      [--extend-select RULES]... [--preview N] [--only RULES]...
                                      [--unpacked FOLDER] [--figures]
    python benchmarks/judged --fresh --import JUDGED.jsonl READER [--drawn NAME]
    python benchmarks/judged --fresh --again FOLDER [--drawn NAME]
    python benchmarks/judged --fresh --kinds

``--draw`` makes a round, named by the day: packages of ``pool.txt`` that no list of the project has used
(``benchmarks/used.py``) are downloaded as wheels and checked at default settings, in a random order, until they give
the findings asked for; forks of what was used are left out. Rules take turns, and within a rule the packages. FOLDER,
outside of any project, gets the unpacked packages and ``rows.jsonl``, to which readers add a verdict and a reason; a
draw that was interrupted goes on when it is called again. ``fresh/NAME.jsonl`` gets the round, ``drawn.txt`` its
releases, which no later round takes.
With ``--figures``, what was found in all packages that were checked is kept for ``docs/figures.md``.

Two readers judge each finding. They see the row, the package and ``guide.md``, and neither each other nor amplint's
code:

- *right*: it holds in a realistic use, a crash that is claimed was run, and a maintainer who supports that scenario
  would want to know;
- *arguable*: it is true, but nobody would run it so;
- *wrong*.

Readers get the words of ``guide.md`` and no others, so that rounds of different days can be compared: of one kind of
finding 80% were called right on one day and 44% on another, though hardly any of them had changed.

``--preview`` draws findings of kinds in preview from the same packages besides, as a round of their own: by its figures
a kind that was mended leaves the preview. ``--only`` draws such a round alone, of some rules: what is rare takes more
packages than a round of all rules could check.

``--unpacked`` draws from sources that lie there, such as the trees of repositories: scripts that train are seldom
in packages.

``--kinds`` writes which kinds of findings ``amplint check`` keeps in preview from then on: see ``kinds.py``.

``--again`` checks the releases of the rounds that lie in FOLDER once more, and marks what is told of them no longer.

``--import`` takes a reader's rows into the round. Without either, the figures of all rounds are printed: by reader,
and pooled by certainty, severity and rule. Pooled, a finding counts for each verdict with the share of its readers who
gave it: with two readers, the mean of both.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem import table
from figures.results import save, today

from judged import again, kinds, pool, tally
from judged.rounds import HERE, Rounds, judged_by, read_verdicts
from judged.rows import RowsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.rounds import Drawn

COMMAND = "python benchmarks/judged --fresh --figures"
ABOUT = (
    "How often findings were right in packages that nobody had looked at before they were drawn, by two readers who "
    "know neither each other's verdicts nor amplint's code. Each round is of the amplint of its day."
)
PREVIEW = "-preview"
"""Ends the name of a round of what amplint keeps back: the figures of what it tells are those of the others."""
DRAW_COMMAND = "python benchmarks/judged --fresh --draw FOLDER --figures"
DRAW_ABOUT = "Findings at default settings in the packages of the last fresh round, AMP6xx counted apart."


def main(arguments: Sequence[str]) -> int:
    """Draw, import or print, and say the exit status."""
    parser = _options()
    chosen = parser.parse_args(arguments)
    if chosen.only and (chosen.preview or chosen.extend_select or chosen.figures):
        parser.error("--only draws a round by itself: no --preview, --extend-select or --figures with it")
    if chosen.judged is not None and chosen.figures:
        parser.error("--import keeps no figures: ask for them when all readers are done")
    rounds = Rounds(chosen.rounds)
    try:
        if chosen.draw is not None:
            return _draw(rounds, chosen)
        if chosen.judged is not None:
            return _import(rounds, Path(chosen.judged[0]), chosen.judged[1], chosen.drawn)
        names = [chosen.drawn] if chosen.drawn else rounds.names()
        found = {name: rounds.load(name) for name in names}
        if chosen.again is not None:
            return _again(rounds, found, chosen)
    except RowsError as error:
        print(error, file=sys.stderr)
        return 2
    if chosen.kinds:
        rows = [*found.values()]
        back = kinds.kept_back(rows)
        kinds.write(back)
        print("\n".join(kinds.lines(kinds.kinds(rows), back)))
        return 0
    if not found:
        print("there is no round yet: --draw makes one", file=sys.stderr)
        return 2
    for name, rows in found.items():
        print("\n".join(tally.lines(name, rows)), end="\n\n")
    if chosen.figures:
        judged = {name: rows for name, rows in found.items() if any(one.verdicts for one in rows)}
        shown = {f"round of {name}, {rows[0].amplint}": tally.figures(rows) for name, rows in judged.items()}
        latest = [rows[0].amplint for rows in judged.values()][-1:]
        alone = [name for name, rows in judged.items() if max(len(one.verdicts) for one in rows) == 1]
        about = f"{ABOUT} One reader alone judged the round of {', '.join(alone)}." if alone else ABOUT
        save("judged-fresh", COMMAND, about=about, first_sight=shown, of=latest[0] if latest else None)
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="judged --fresh", description="Findings in packages never used, judged.")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--draw", type=Path, metavar="FOLDER", help="make a round, with its packages in FOLDER")
    asked.add_argument("--again", type=Path, metavar="FOLDER", help="mark what is told no longer of what lies there")
    asked.add_argument("--kinds", action="store_true", help="write which kinds of findings amplint keeps in preview")
    asked.add_argument(
        "--import", nargs=2, dest="judged", metavar=("JUDGED.jsonl", "READER"), help="take a reader's verdicts"
    )
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    parser.add_argument("--drawn", metavar="NAME", help="of the round (default: the day; to print: all; else the last)")
    parser.add_argument("--count", type=int, default=120, help="findings to draw (default: 120)")
    parser.add_argument("--packages", type=int, default=40, help="from at least so many packages (default: 40)")
    parser.add_argument("--most", type=int, default=5, help="from a package (default: 5)")
    parser.add_argument("--checked", type=int, default=60, help="packages to check at least (default: 60)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="(default: 0)")
    parser.add_argument(
        "--extend-select", action="append", default=[], metavar="RULES", help="draw what is in preview of these, too"
    )
    parser.add_argument(
        "--preview",
        type=int,
        default=0,
        metavar="N",
        help=f"draw N of kinds in preview, too, as the round NAME{PREVIEW}",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="RULES",
        help=f"draw what these find of kinds in preview, alone, as the round NAME{PREVIEW}",
    )
    parser.add_argument(
        "--unpacked",
        type=Path,
        metavar="FOLDER",
        help="draw from the folders NAME-VERSION and OWNER__NAME-COMMIT there, and not from packages",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each CPU)")
    parser.add_argument("--seconds", type=float, default=1800, help="time limit of a package (default: 1800)")
    parser.add_argument(
        "--rounds",
        type=Path,
        default=HERE,
        metavar="FOLDER",
        help="with pool.txt, drawn.txt and fresh/ (default: the project's own)",
    )
    return parser


def _draw(rounds: Rounds, chosen: argparse.Namespace) -> int:
    name = (chosen.drawn or today()) + (PREVIEW if chosen.only else "")
    if name in rounds.names():
        raise RowsError(f"there is a round {name} already: name this one with --drawn")
    how = pool.Draw(
        chosen.count,
        chosen.packages,
        chosen.most,
        chosen.checked,
        chosen.seed,
        chosen.jobs,
        chosen.seconds,
        tuple(chosen.extend_select),
        chosen.preview,
        tuple(chosen.only),
        chosen.unpacked.resolve() if chosen.unpacked is not None else None,
    )
    folder = chosen.draw.resolve()
    taken = pool.taken(rounds)
    drawn = pool.draw(pool.candidates(rounds, taken, how.unpacked), folder, how, taken)
    parts = {name: (drawn.told, "rows.jsonl")}
    if chosen.preview:
        parts[f"{name}{PREVIEW}"] = drawn.preview, "preview.jsonl"
    for each, (rows, file) in parts.items():
        rounds.save(each, rows)
        rounds.note(each, rows)
        packages = len({one.place.package for one in rows})
        print(f"{each}: {len(rows)} findings from {packages} packages; readers fill in {folder / file}")
    if chosen.figures:
        shown = {title: figure for title, figure in table.figures(drawn.checked).items() if title != "releases"}
        save("ecosystem-fresh", DRAW_COMMAND, about=DRAW_ABOUT, first_sight={"packages": len(drawn.checked), **shown})
    return 0


def _again(rounds: Rounds, found: Mapping[str, Sequence[Drawn]], chosen: argparse.Namespace) -> int:
    every = [one for rows in found.values() for one in rows]
    told = again.checked(every, chosen.again.resolve(), chosen.jobs, chosen.seconds)
    for name, rows in found.items():
        marked = [again.marked(one, told) for one in rows]
        rounds.save(name, marked)
        lying = [one for one in marked if (one.place.package, one.place.release) in told]
        if lying:
            print(f"{name}: {sum(bool(one.gone) for one in lying)} of {len(lying)} findings are told no longer")
    return 0


def _import(rounds: Rounds, path: Path, reader: str, name: str | None) -> int:
    if not rounds.names():
        raise RowsError("there is no round yet: --draw makes one")
    name = name or rounds.names()[-1]
    rows = judged_by(reader, rounds.load(name), read_verdicts(path))
    rounds.save(name, rows)
    print(f"{name}: {sum(reader in one.verdicts for one in rows)} of {len(rows)} findings judged by {reader}")
    return 0
