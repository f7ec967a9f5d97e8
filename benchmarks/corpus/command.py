"""Are real bugs found where they were, and gone once they were fixed?

    python benchmarks/corpus --clones FOLDER [--list seen|learned|kept]... [--cache FOLDER] [--label LABEL]...
                             [--id ID]... [--show missed|hit|kept|negatives]... [--extend-select RULES] [--pedantic]
                             [--json FILE] [--figures]

``cases.jsonl`` lists bugs of public repositories: the commit before the fix, the fix, the file, the lines that are
wrong, a label; ``negatives.jsonl`` lists lines that look odd and are right. There are three such lists: ``seen``, which
amplint was mended on, and in ``mined/`` two halves of repositories, one to learn from and one that is kept back, of
which only figures are printed. FOLDER holds git clones of the repositories, bare or not, as OWNER/NAME, OWNER+NAME,
OWNER+NAME/repo or NAME. The Python files of each commit, and those that state requirements, are exported to the cache
once; then ``amplint check`` without configuration judges the rows' files twice: in the whole checkout with default
options, by the torch that the project requires, which is what a user gets and what the columns are about; and each
file alone, with every default scenario named (the column ``alone``).

A case is found if a finding whose code fits its label (``labels.json``) starts within 2 lines of a labelled line.
``by a cause`` counts apart, and not as found, the cases that are missed there while such a finding lies elsewhere in
the file and names a labelled line among its causes: amplint reports the operation that fails, and many a fix is where
the dtype came from, so that is where the row is. It
is gone after the fix if no fitting finding, in a scenario in which it was found, lies where those lines went: a fix for
autocast may leave what fails in a half-precision model. Any finding on the lines of a negative is a false alarm, but
for codes that a corrected row names as right there: those are counted apart.

``--figures`` keeps the figures of all rows for ``docs/figures.md``.

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

from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from corpus import summary, table
from corpus.exports import ExportError, Exports
from corpus.judging import CheckError, Outcome, check, judge, judge_negative
from corpus.rows import DECIDABLE_IN_FILE, KEPT, LISTS, RowsError, load_cases, load_labels, load_negatives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpus.judging import Judged
    from corpus.rows import Place

SHOWN = ("missed", "hit", "kept", "negatives")
HEADS = {
    "seen": "bugs that amplint was mended on",
    "learned": "mined bugs, the half to learn from",
    KEPT: "mined bugs, the half that is kept back: figures only",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; prints the rows asked for and the tables."""
    parser = _options()
    chosen = parser.parse_args(arguments)
    if chosen.figures and (chosen.label or chosen.id or chosen.extend_select or chosen.pedantic):
        parser.error("--figures are those of all rows at default settings")
    if chosen.figures and len({"learned", KEPT}.intersection(chosen.list)) == 1:
        parser.error("--figures of mined bugs are those of both halves: --list learned --list kept")
    lists = {chosen.rows.name: chosen.rows} if chosen.rows else {name: LISTS[name] for name in chosen.list or LISTS}
    exports = Exports(chosen.clones, chosen.cache)
    outcomes: dict[str, Outcome] = {}
    documents: dict[str, dict[str, Any]] = {}
    for name, folder in lists.items():
        hidden = folder == LISTS[KEPT]
        try:
            outcome = outcomes[name] = judged_list(folder, exports, chosen, hidden)
        except (RowsError, CheckError) as error:
            print(error, file=sys.stderr)
            return 2
        print(f"{'' if not documents else chr(10)}{name}: {folder.name if chosen.rows else HEADS[name]}")
        _print(() if hidden else chosen.show, outcome)
        documents[name] = _document(outcome, hidden)
    if chosen.json:
        chosen.json.write_text(json.dumps(documents, indent=1) + "\n", encoding="utf-8")
    if chosen.figures:
        summary.keep(outcomes)
    return 1 if any(outcome.lacking for outcome in outcomes.values()) else 0


def judged_list(folder: Path, exports: Exports, chosen: argparse.Namespace, hidden: bool) -> Outcome:
    """What ``amplint check`` makes of one list, in whole checkouts and alone. Raises RowsError, CheckError.

    Of a hidden list no row can be asked for by its id.
    """
    labels = load_labels()
    own = folder / "labels.json"
    labels |= load_labels(own) if own.exists() else {}
    ids = () if hidden else chosen.id
    cases = [
        case
        for case in load_cases(folder / "cases.jsonl")
        if (not chosen.label or case.label in chosen.label) and (not ids or case.id in ids)
    ]
    negatives = [
        negative
        for negative in load_negatives(folder / "negatives.jsonl")
        if not chosen.label and (not ids or negative.id in ids)
    ]
    unknown = {case.label for case in cases} - set(labels)
    if unknown:
        raise RowsError(f"labels.json lacks {', '.join(sorted(unknown))}")
    wanted = [place for case in cases for place in (case.before, case.after)] + [one.place for one in negatives]
    files, lacking = _exported(wanted, exports)
    for line in dict.fromkeys(lacking):
        print(line, file=sys.stderr)
    if not files:
        raise RowsError("no row is left")
    cases = [case for case in cases if case.before in files and case.after in files]
    negatives = [one for one in negatives if one.place in files]
    alone = {place: exports.alone(place).resolve() for place in files}
    options = _check_options(chosen)
    named = [option for scenario in DEFAULT_SCENARIOS for option in ("--scenario", scenario.name)]
    whole_found = check(dict.fromkeys(files.values()), options)
    alone_found = check(dict.fromkeys(alone.values()), [*options, *named])
    return Outcome(
        judged=[judge(c, labels[c.label], files[c.before], files[c.after], whole_found) for c in cases],
        alone=[judge(c, labels[c.label], alone[c.before], alone[c.after], alone_found) for c in cases],
        negatives=[judge_negative(one, files[one.place], whole_found) for one in negatives],
        alone_negatives=[judge_negative(one, alone[one.place], alone_found) for one in negatives],
        lacking=len(set(lacking)),
    )


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="corpus", description="Real bugs, found before their fix and gone after it.")
    parser.add_argument("--clones", type=Path, required=True, metavar="FOLDER", help="where the git clones lie")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amplint-corpus"
    parser.add_argument("--cache", type=Path, default=cache, metavar="FOLDER", help=f"for exports (default: {cache})")
    parser.add_argument("--list", action="append", default=[], choices=tuple(LISTS), help="only this list")
    parser.add_argument(
        "--rows", type=Path, metavar="FOLDER", help="a list of your own: cases.jsonl, negatives.jsonl, labels.json"
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


def _print(shown: Sequence[str], outcome: Outcome) -> None:
    for name in shown:
        if name == "negatives":
            rows = table.flagged(outcome.negatives)
        else:
            rows = {"missed": table.missed, "hit": table.hit, "kept": table.kept}[name](outcome.judged)
        print(f"{name}: {len(rows)}", *rows, "", sep="\n")
    print("\n".join(table.lines(outcome)))


def _document(outcome: Outcome, hidden: bool) -> dict[str, Any]:
    judged = outcome.judged
    figures = {
        "all": _figures(judged),
        "decidable in one file": _figures([one for one in judged if one.case.decidable in DECIDABLE_IN_FILE]),
        "alone": _figures(outcome.alone),
        "alone, decidable in one file": _figures([a for a in outcome.alone if a.case.decidable in DECIDABLE_IN_FILE]),
        "labels": {
            label: _figures([one for one in judged if one.case.label == label])
            for label in sorted({one.case.label for one in judged})
        },
        "negatives": {"all": len(outcome.negatives), "flagged": sum(bool(one.alarms) for one in outcome.negatives)},
    }
    if hidden:
        return {"figures": figures}
    return {
        "figures": figures,
        "cases": [
            {
                "id": one.case.id,
                "label": one.case.label,
                "decidable": one.case.decidable,
                "found": bool(one.hits),
                "found_alone": bool(by_itself.hits),
                "by_cause": [asdict(finding) for finding in one.by_cause],
                "gone_after_fix": None if not one.hits else not one.kept,
                "hits": [asdict(finding) for finding in one.hits],
                "near": [asdict(finding) for finding in one.near],
                "kept": [asdict(finding) for finding in one.kept],
            }
            for one, by_itself in zip(judged, outcome.alone, strict=True)
        ],
        "negatives": [
            {"id": one.negative.id, "alarms": [asdict(finding) for finding in one.alarms]} for one in outcome.negatives
        ],
    }


def _figures(judged: Sequence[Judged]) -> dict[str, float]:
    counted = table.figures(judged)
    return {**asdict(counted), "per_10000_lines": round(counted.density, 2)}
