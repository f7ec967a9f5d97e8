"""Are real bugs found where they were, and gone once they were fixed?

    python benchmarks/corpus --clones FOLDER [--cache FOLDER] [--label LABEL]... [--id ID]...
                             [--show missed|hit|kept|negatives]... [--extend-select RULES] [--pedantic]
                             [--json FILE] [--figures]

``cases.jsonl`` lists bugs of public repositories: the commit before the fix, the fix, the file, the lines that are
wrong, a label; ``negatives.jsonl`` lists lines that look odd and are right. FOLDER holds git clones of the
repositories, bare or not, as OWNER/NAME, OWNER+NAME, OWNER+NAME/repo or NAME. The Python files of each commit, and
those that state requirements, are exported to the cache once; then one ``amplint check`` without configuration judges
the rows' files, each by the torch that its project requires.

A case is found if a finding whose code fits its label (``labels.json``) starts within 2 lines of a labelled line.
``by a cause`` counts apart, and not as found, the cases that are missed there while such a finding lies elsewhere in
the file and names a labelled line among its causes: amplint reports the operation that fails, and many a fix is where
the dtype came from, so that is where the row is. It
is gone after the fix if no fitting finding, in a scenario in which it was found, lies where those lines went: a fix for
autocast may leave what fails in a half-precision model. Any finding on the lines of a negative is a false alarm, but
for codes that a corrected row names as right there: those are counted apart. ``--figures`` keeps the figures of all
rows for ``docs/figures.md``.

Leaves with status 1 where rows could not be had, 2 where none could or ``amplint check`` failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus import summary, table
from corpus.exports import ExportError, Exports
from corpus.judging import CheckError, check, judge, judge_negative
from corpus.rows import load_cases, load_labels, load_negatives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpus.judging import Judged, JudgedNegative
    from corpus.rows import Place

SHOWN = ("missed", "hit", "kept", "negatives")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; prints the rows asked for and the table."""
    parser = _options()
    chosen = parser.parse_args(arguments)
    if chosen.figures and (chosen.label or chosen.id or chosen.extend_select or chosen.pedantic):
        parser.error("--figures are those of all rows at default settings")
    labels = load_labels(chosen.rows / "labels.json")
    cases = [
        case
        for case in load_cases(chosen.rows / "cases.jsonl")
        if (not chosen.label or case.label in chosen.label) and (not chosen.id or case.id in chosen.id)
    ]
    negatives = [
        negative
        for negative in load_negatives(chosen.rows / "negatives.jsonl")
        if not chosen.label and (not chosen.id or negative.id in chosen.id)
    ]
    unknown = {case.label for case in cases} - set(labels)
    if unknown:
        print(f"labels.json lacks {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    wanted = [place for case in cases for place in (case.before, case.after)] + [one.place for one in negatives]
    files, lacking = _exported(wanted, Exports(chosen.clones, chosen.cache))
    for line in dict.fromkeys(lacking):
        print(line, file=sys.stderr)
    if not files:
        print("no row is left", file=sys.stderr)
        return 2
    try:
        found = check(dict.fromkeys(files.values()), _check_options(chosen))
    except CheckError as error:
        print(error, file=sys.stderr)
        return 2
    judged = [
        judge(case, labels[case.label], files[case.before], files[case.after], found)
        for case in cases
        if case.before in files and case.after in files
    ]
    alarms = [judge_negative(one, files[one.place], found) for one in negatives if one.place in files]
    _print(chosen.show, judged, alarms)
    if chosen.json:
        chosen.json.write_text(json.dumps(_document(judged, alarms), indent=1) + "\n", encoding="utf-8")
    if chosen.figures:
        summary.keep(judged, alarms, len(set(lacking)))
    return 1 if lacking else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="corpus", description="Real bugs, found before their fix and gone after it.")
    parser.add_argument("--clones", type=Path, required=True, metavar="FOLDER", help="where the git clones lie")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amplint-corpus"
    parser.add_argument("--cache", type=Path, default=cache, metavar="FOLDER", help=f"for exports (default: {cache})")
    parser.add_argument(
        "--rows",
        type=Path,
        default=Path(__file__).resolve().parent,
        metavar="FOLDER",
        help="with cases.jsonl, negatives.jsonl and labels.json (default: the project's own)",
    )
    parser.add_argument("--label", action="append", default=[], help="only cases of this label")
    parser.add_argument("--id", action="append", default=[], help="only this row")
    parser.add_argument("--show", action="append", default=[], choices=SHOWN, help="list these rows, one a line")
    parser.add_argument("--extend-select", metavar="RULES", help="besides those on by default")
    parser.add_argument("--pedantic", action="store_true", help="count findings that are merely possible, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows and figures")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    return parser


def _check_options(chosen: argparse.Namespace) -> list[str]:
    selected = ["--extend-select", chosen.extend_select] if chosen.extend_select else []
    return [*selected, *(["--pedantic"] if chosen.pedantic else [])]


def _exported(places: Sequence[Place], exports: Exports) -> tuple[dict[Place, Path], list[str]]:
    files: dict[Place, Path] = {}
    lacking: list[str] = []
    for place in dict.fromkeys(places):
        try:
            files[place] = exports.file(place).resolve()
        except ExportError as error:
            lacking.append(str(error))
    return files, lacking


def _print(shown: Sequence[str], judged: Sequence[Judged], negatives: Sequence[JudgedNegative]) -> None:
    for name in shown:
        if name == "negatives":
            rows = table.flagged(negatives)
        else:
            rows = {"missed": table.missed, "hit": table.hit, "kept": table.kept}[name](judged)
        print(f"{name}: {len(rows)}", *rows, "", sep="\n")
    print("\n".join(table.lines(judged, negatives)))


def _document(judged: Sequence[Judged], negatives: Sequence[JudgedNegative]) -> dict[str, Any]:
    return {
        "figures": {
            "all": _figures(judged),
            "decidable in one file": _figures([one for one in judged if one.case.decidable in table.DECIDABLE_IN_FILE]),
            "labels": {
                label: _figures([one for one in judged if one.case.label == label])
                for label in sorted({one.case.label for one in judged})
            },
        },
        "cases": [
            {
                "id": one.case.id,
                "label": one.case.label,
                "decidable": one.case.decidable,
                "found": bool(one.hits),
                "by_cause": [asdict(finding) for finding in one.by_cause],
                "gone_after_fix": None if not one.hits else not one.kept,
                "hits": [asdict(finding) for finding in one.hits],
                "near": [asdict(finding) for finding in one.near],
                "kept": [asdict(finding) for finding in one.kept],
            }
            for one in judged
        ],
        "negatives": [
            {"id": one.negative.id, "alarms": [asdict(finding) for finding in one.alarms]} for one in negatives
        ],
    }


def _figures(judged: Sequence[Judged]) -> dict[str, float]:
    counted = table.figures(judged)
    return {**asdict(counted), "per_10000_lines": round(counted.density, 2)}
