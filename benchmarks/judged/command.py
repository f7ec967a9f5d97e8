"""How often is amplint right about released packages?

    python benchmarks/judged [--drawn DATE] [--result FILE [--figures]] [--show right|wrong|arguable]...
    python benchmarks/judged --fresh ...

``findings.jsonl`` holds findings drawn at random over rules and packages (``benchmarks/ecosystem --draw``), each read
in its source, and run where it claims a crash, with a verdict and a reason; ``second.jsonl`` what a second reader said
of some of these lines who saw neither the finding nor the first verdict, only the place and what to look at. Prints
the verdicts by rule, for proven findings, and how often the two readers agree.

There are several draws, each from what amplint reported on a day, read by people who did not know the earlier verdicts.
``--drawn`` counts one of them; without it all count, and of a finding that was drawn twice the later verdict.

``--result FILE`` is a kept result of ``benchmarks/ecosystem``: only what it still has is counted, so the figures are
of the version that made it. Findings that came since are in nobody's judgement. ``--figures`` keeps them for
``docs/figures.md``.

``--fresh`` is about packages that nobody had looked at: see ``blind.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem.result import ResultError, load
from figures.results import save as keep

from judged import blind
from judged.rows import VERDICTS, Judged, Place, RowsError, findings, second_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FRESH = "--fresh"
HERE = Path(__file__).resolve().parent
COMMAND = "python benchmarks/ecosystem --json FILE\npython benchmarks/judged --result FILE --figures"
ABOUT = "How often findings in the releases of `benchmarks/ecosystem` were right: drawn at random, read, and run."


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures, or do what is asked of fresh rounds."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if FRESH in given:
        return blind.main([one for one in given if one != FRESH])
    parser = _options()
    chosen = parser.parse_args(given)
    if chosen.figures and not chosen.result:
        parser.error("--figures needs --result: the figures are of the version that made it")
    try:
        judged = _drawn(findings(chosen.findings), chosen.drawn)
        second = second_verdicts(chosen.second)
        standing = _still_reported(judged, chosen.result) if chosen.result else judged
    except (RowsError, ResultError) as error:
        print(error, file=sys.stderr)
        return 2
    for verdict in chosen.show:
        for one in (one for one in standing if one.verdict == verdict):
            print(f"{verdict}: {one.place.package} {one.place.path}:{one.place.line} {one.code} {one.reason}")
    print("\n".join(_table(standing)))
    if chosen.result:
        gone = _gone(judged, standing)
        print(f"{len(judged) - len(standing)} of {len(judged)} judged findings are no longer reported: {gone}")
    print(_agreement(judged, second))
    if chosen.figures:
        keep("judged", COMMAND, about=ABOUT, seen=_figures(standing))
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="judged", description="Findings in released packages, judged by reading.")
    parser.add_argument(
        "--findings", type=Path, default=HERE / "findings.jsonl", metavar="FILE", help="judged findings"
    )
    parser.add_argument(
        "--second", type=Path, default=HERE / "second.jsonl", metavar="FILE", help="judged again, blind"
    )
    parser.add_argument(
        "--drawn", metavar="DATE", help="count the findings that were drawn on this day, or at this hour of it"
    )
    parser.add_argument("--result", type=Path, metavar="FILE", help="count what this result of ecosystem still has")
    parser.add_argument("--show", action="append", default=[], choices=VERDICTS, help="list these, one a line")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    parser.add_argument(FRESH, action="store_true", help="rounds in packages never used: --fresh --help says more")
    return parser


def _drawn(judged: Sequence[Judged], day: str | None) -> list[Judged]:
    """The judgements of one draw, or of all with the latest for each finding. Raises RowsError."""
    days = sorted({one.drawn for one in judged})
    if day is not None and day not in days:
        raise RowsError(f"no findings were drawn on {day}: there are {', '.join(days)}")
    latest = {(one.place, one.code): one for one in sorted(judged, key=lambda one: one.drawn)}
    return [one for one in judged if (one.drawn == day if day else latest[one.place, one.code] is one)]


def _still_reported(judged: Sequence[Judged], result: Path) -> list[Judged]:
    """What a result still has, as severe and as certain as it is there."""
    reported = {
        (Place(one.release.package, one.release.version, finding.path, line), finding.code): finding
        for one in load(result)
        for finding in one.findings
        for line in (finding.line, *finding.also)
    }
    found = [(one, reported.get((one.place, one.code))) for one in judged]
    return [replace(one, severity=now.severity, certainty=now.certainty) for one, now in found if now is not None]


def _table(judged: Sequence[Judged]) -> Iterator[str]:
    yield f"{'':10} {'right':>6} {'wrong':>6} {'arguable':>9} {'right %':>8} {'wrong %':>8}"
    for code in sorted({one.code for one in judged}):
        yield _row(code, [one for one in judged if one.code == code])
    yield _row("proven", [one for one in judged if one.certainty == "proven"])
    yield _row("errors", [one for one in judged if one.severity == "error"])
    yield _row("all", judged)


def _row(name: str, judged: Sequence[Judged]) -> str:
    counts = Counter(one.verdict for one in judged)
    right, wrong, arguable = (counts[verdict] for verdict in VERDICTS)
    shares = [f"{100 * count / len(judged):.1f}" if judged else "-" for count in (right, wrong)]
    return f"{name:10} {right:6} {wrong:6} {arguable:9} {shares[0]:>8} {shares[1]:>8}"


def _figures(judged: Sequence[Judged]) -> dict[str, dict[str, dict[str, tuple[int, int]]]]:
    groups = {code: [one for one in judged if one.code == code] for code in sorted({one.code for one in judged})}
    groups |= {"proven": [one for one in judged if one.certainty == "proven"]}
    groups |= {"errors": [one for one in judged if one.severity == "error"], "all": list(judged)}
    return {"verdicts": {name: _shares(rows) for name, rows in groups.items()}}


def _shares(judged: Sequence[Judged]) -> dict[str, tuple[int, int]]:
    return {verdict: (sum(one.verdict == verdict for one in judged), len(judged)) for verdict in VERDICTS}


def _gone(judged: Sequence[Judged], standing: Sequence[Judged]) -> str:
    gone = Counter(one.verdict for one in judged) - Counter(one.verdict for one in standing)
    return ", ".join(f"{gone[verdict]} {verdict}" for verdict in VERDICTS)


def _agreement(judged: Sequence[Judged], second: dict[tuple[str, Place, str], str]) -> str:
    found = [(one.verdict, second.get((one.drawn, one.place, one.code))) for one in judged]
    pairs = [(first, again) for first, again in found if again is not None]
    same = sum(first == again for first, again in pairs)
    opposed = sum({first, again} == {"right", "wrong"} for first, again in pairs)
    return f"judged twice: {len(pairs)}, {same} with the same verdict, {opposed} right for one and wrong for the other"
