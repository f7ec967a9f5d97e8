"""Is amplint's fix of a real bug as good as the one that was merged? A reader compared 40.

    python benchmarks/compared [--round N] [--show VERDICT]... [--figures]
    python benchmarks/compared --diffs FOLDER --clones FOLDER [--cache FOLDER] [--id ID]...

The bugs were drawn from those of ``benchmarks/corpus`` that may be looked at (``seen`` and ``learned``) and that
amplint finds with every rule and ``--pedantic``: the first 40 of 114 by the SHA-256 of their id, whether a fix is
offered or not. The reader read what ``--fix --unsafe-fixes`` makes of the whole checkout's file beside the merged
change. Round 1 is what amplint did before it was mended on these bugs, round 2 after: a figure against regressions, no
estimate.

``--diffs`` writes what amplint makes of each bug's file today, one file a bug and setting, for the next reading.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.exports import ExportError, Exports
from corpus.rows import LISTS, load_cases
from figures import results

from compared.rows import GOOD, SETTINGS, VERDICTS, last_round, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from figures.results import Figures, Value

    from compared.rows import Row

COMMAND = "python benchmarks/compared --figures"
ABOUT = (
    "amplint's fix of 40 real bugs that it finds, beside the fix that was merged, compared by a reader: drawn by hash "
    "from bugs that were looked at before, whether a fix is offered or not. The first round is from before amplint was "
    "mended on them, the second guards against regressions."
)
OPTIONS = {"default": (), "pedantic": ("--pedantic", "--extend-select", "AMP")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of a round, or write today's diffs."""
    parser = _options()
    chosen = parser.parse_args(arguments)
    rows = load()
    if chosen.diffs:
        if chosen.clones is None:
            parser.error("--diffs needs --clones")
        return _write_diffs(chosen, {row.id: row.setting for row in rows})
    number = chosen.round or last_round(rows)
    of_round = [row for row in rows if row.round == number]
    if not of_round:
        parser.error(f"there is no round {number}")
    print("\n".join(table([row for row in of_round if not chosen.show or row.verdict in chosen.show])))
    print("", summary(of_round), sep="\n")
    if chosen.figures:
        results.save("compared-fixes", COMMAND, about=ABOUT, seen=figures_of(rows), of=of_round[0].amplint)
    return 0


def table(rows: Iterable[Row]) -> Iterator[str]:
    """A line a row: verdict, code, setting, id and reason."""
    for row in rows:
        yield f"{row.verdict:8} {row.code} {row.setting:8} {row.id}: {row.reason}"


def summary(rows: Sequence[Row]) -> str:
    """``30 of 40 as good as the merged fix (75%); as good 27, better 3, worse 5, none 5, harmful 0``."""
    counts = Counter(row.verdict for row in rows)
    good = sum(counts[verdict] for verdict in GOOD)
    each = ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS)
    return f"{good} of {len(rows)} as good as the merged fix or better ({good / len(rows):.0%}): {each}"


def figures_of(rows: Sequence[Row]) -> Figures:
    """Verdicts by round."""
    rounds: dict[str, dict[str, Value]] = {}
    for number in sorted({row.round for row in rows}):
        verdicts = [row.verdict for row in rows if row.round == number]
        good = sum(verdict in GOOD for verdict in verdicts)
        counts: dict[str, Value] = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
        rounds[f"round {number}"] = {"as good or better": (good, len(verdicts)), **counts}
    return {"fixes": rounds}


def _write_diffs(chosen: argparse.Namespace, settings: dict[str, str]) -> int:
    """Write what ``--diff`` shows of each bug's file in both settings."""
    exports = Exports(chosen.clones, chosen.cache)
    cases = [case for name, folder in LISTS.items() if name != "kept" for case in load_cases(folder / "cases.jsonl")]
    chosen.diffs.mkdir(parents=True, exist_ok=True)
    lacking = 0
    for case in cases:
        if case.id not in settings or (chosen.id and case.id not in chosen.id):
            continue
        try:
            file = exports.file(case.before).resolve()
        except ExportError as error:
            print(error, file=sys.stderr)
            lacking += 1
            continue
        for setting in SETTINGS:
            flags = ("--isolated", "--no-cache", "--exit-zero", "--unsafe-fixes", "--diff", *OPTIONS[setting])
            command = [sys.executable, "-m", "amplint", "check", *flags, str(file)]
            shown = subprocess.run(command, capture_output=True, check=False).stdout
            (chosen.diffs / f"{case.id}.{setting}.diff").write_bytes(shown)
    return 1 if lacking else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compared", description="amplint's fixes beside the merged ones.")
    parser.add_argument("--round", type=int, metavar="N", help="which reading (default: the last)")
    parser.add_argument("--show", action="append", default=[], choices=VERDICTS, help="only rows of this verdict")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    parser.add_argument("--diffs", type=Path, metavar="FOLDER", help="write today's fixes there")
    parser.add_argument("--clones", type=Path, metavar="FOLDER", help="where the git clones lie")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amplint-corpus"
    parser.add_argument("--cache", type=Path, default=cache, metavar="FOLDER", help=f"for exports (default: {cache})")
    parser.add_argument("--id", action="append", default=[], help="only this bug")
    return parser
