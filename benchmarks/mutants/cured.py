"""``python -m mutants.cured FOLDER MOST KEEP [HALF]...``: are mutants that hurt cured by ``--fix --unsafe-fixes``?

Only those count of which amplint finds what they do wrong (see :func:`mutants.claims.finds`), with a fix: what it
finds elsewhere in the same file, a deprecated name perhaps, it fixes too, which cures nothing.

With ``--figures`` for KEEP (else nothing), the figures are kept for the page.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from halves import HALVES

from amplint.config import Config
from amplint.engine import check_file
from amplint.finding import Applicability
from amplint.judging import judging_options
from amplint.plugins import load_rules
from amplint.source import Source
from mutants.claims import Task, check, finds
from mutants.draw import draw
from mutants.fates import CURED, CURED_FATES, FIXED_FATES, STILL, UNFIXED, UNFOUND, WORSE
from mutants.libraries import libraries
from mutants.outcomes import BETWEEN, HARMLESS, HURTS, UNDECIDED
from mutants.rerun import relabel
from mutants.rows import files_of, load
from mutants.summary import keep_cured

if TYPE_CHECKING:
    from mutants.rows import Row


def main(folder: str, most: str, keep: str, *halves: str) -> int:
    """Print by operator, for each half, what became of each mutant that hurt."""
    known = libraries()
    by_half: dict[str, dict[str, Counter[str]]] = {}
    not_run: dict[str, int] = {}
    for half in halves or HALVES:
        rows = [row for file in files_of(half, Path(folder)) for row in load(file)[0] if _hurts(row.labels)]
        drawn = draw(rows, int(most))
        fates = by_half[half] = {row.operator: Counter[str]() for row in drawn}
        without = Counter[str]()
        for name in sorted({row.library for row in drawn}):
            of_library = [row for row in drawn if row.library == name]
            fixing = Fixing()
            for row, labels in relabel(known[name], of_library, fixing):
                if isinstance(labels, str) and not labels.startswith("it "):
                    without[labels[:60]] += 1
                else:
                    fates[row.operator][fate(row, labels)] += 1
            for row, why in fixing.unfixed:
                fates[row.operator][why] += 1
        not_run[half] = without.total()
        _print(half, fates, without)
    if keep:
        keep_cured(by_half, not_run, int(most))
    return 0


class Fixing:
    """``--fix --unsafe-fixes`` over mutants in which what they do wrong is found, with a fix; ``unfixed`` are the
    others, each with what is lacking."""

    def __init__(self) -> None:
        self.unfixed: list[tuple[Row, str]] = []

    def __call__(self, row: Row, path: Path, data: bytes) -> bytes | None:
        hurts = [scenario for scenario, label in row.labels.items() if label["label"] in HURTS]
        (new,) = check(Task(path, (row,))).new
        found = [claim for claim in new if any(finds(claim, row, scenario) for scenario in hurts)]
        after = fix(path, data) if any(claim.fixable for claim in found) else None
        if after is None:
            self.unfixed.append((row, UNFIXED if found else UNFOUND))
        return after


def fix(path: Path, data: bytes) -> bytes | None:
    """What ``--fix --unsafe-fixes`` makes of a broken file; None where it changes nothing."""
    options = judging_options(Config(), load_rules(), fix=Applicability.UNSAFE, write=False)
    return check_file(Source(path, data), options).after


def fate(row: Row, labels: dict[str, dict[str, str]] | str) -> str:
    """What became of a mutant: ``labels`` are the fixed one's, or why it is no longer the same program in float32."""
    if isinstance(labels, str):
        return WORSE
    before = {scenario: one["label"] for scenario, one in row.labels.items()}
    after = {scenario: HARMLESS if _equals(one) else one["label"] for scenario, one in labels.items()}
    if any(after.get(scenario) in HURTS and label not in HURTS for scenario, label in before.items()):
        return WORSE
    hurt = [after.get(scenario) for scenario, label in before.items() if label in HURTS]
    if any(label in HURTS for label in hurt):
        return STILL
    return CURED if all(label == HARMLESS for label in hurt) else UNDECIDED


def _equals(label: dict[str, str]) -> bool:
    """Whether no input showed a difference from the unbroken original."""
    return label["label"] == UNDECIDED and label.get("error") != BETWEEN


def _hurts(labels: dict[str, dict[str, str]]) -> bool:
    return any(one["label"] in HURTS for one in labels.values())


def _print(half: str, fates: dict[str, Counter[str]], without: Counter[str]) -> None:
    print(f"{half}: {sum(map(Counter.total, fates.values()))} mutants that hurt")
    print(f"  {'operator':32}" + "".join(f"{name:>13}" for name in CURED_FATES))
    for operator, counts in sorted(fates.items()):
        print(f"  {operator:32}" + "".join(f"{counts[name]:13}" for name in CURED_FATES))
    total = sum(fates.values(), Counter[str]())
    print(f"  {'all':32}" + "".join(f"{total[name]:13}" for name in CURED_FATES))
    fixed = sum(total[name] for name in FIXED_FATES)
    for name in (CURED, WORSE):
        print(f"  {name} of those with a fix: {total[name]} of {fixed} ({total[name] / max(fixed, 1):.1%})")
    for reason, number in without.most_common(5):
        print(f"  {number} without a second run: {reason}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
