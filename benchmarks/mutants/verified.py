"""``python -m mutants.verified FOLDER COUNT SEED LIBRARIES KEEP [HALF]...``: does ``verify`` confirm what is broken?

Takes mutants of classes that raise in some scenario. ``verify`` gets the broken text and the class's name; it builds
and calls the class by itself. The same run of the unbroken text shows whether it can build the class from its signature
alone, and what it confirms there already, which does not count. With ``--figures`` for KEEP (else nothing), the figures
are kept for the page.

The labels come from classes that were built in the same way: the figure says whether ``verify`` sees what inputs of
that kind show, not whether others would show more.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import random
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from halves import HALVES, LEARNED

from amplint.source import SourceError
from amplint.verify.build import functions, synthesis
from amplint.verify.job import CLEAN, CONFIRMING
from mutants.edits import apply
from mutants.fates import CONFIRMED, OTHER, RAN, SOME, UNBUILT, VERIFIED_FATES
from mutants.libraries import libraries
from mutants.outcomes import RAISES
from mutants.rows import KIND_TRAINING, files_of, load
from mutants.stand_ins import declare_torchvision, forget_absent_devices
from mutants.summary import keep_verified
from mutants.verify_run import Ran, job_for, prepare, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.verify.job import Outcome
    from mutants.rows import Row

SIGNATURE_ALONE = (synthesis.HOW, functions.HOW)


def main(folder: str, count: str, seed: str, names: str, keep: str, *halves: str) -> int:
    """Print by operator, for each half, what ``verify`` says of ``count`` drawn mutants (0: of all)."""
    prepare()
    declare_torchvision()
    forget_absent_devices()
    only = set(filter(None, names.split(",")))
    by_half: dict[str, dict[str, Counter[str]]] = {}
    uncounted: dict[str, Counter[str]] = {}
    for half in halves or HALVES:
        rows = [row for file in files_of(half, Path(folder)) for row in load(file)[0] if raising(row)]
        rows = sorted((row for row in rows if not only or row.library in only), key=lambda row: row.key)
        drawn = random.Random(int(seed)).sample(rows, min(int(count) or len(rows), len(rows)))
        fates = by_half[half] = defaultdict(Counter)
        left_out = uncounted[half] = Counter[str]()
        grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in drawn:
            grouped[row.library, row.target].append(row)
        for number, of_target in enumerate(grouped.values(), 1):
            print(f"{half}: {number} of {len(grouped)} targets", file=sys.stderr, flush=True)
            for row, said, detail in judged(of_target):
                if said in VERIFIED_FATES:
                    fates[row.operator][said] += 1
                else:
                    left_out[said] += 1
                if half == LEARNED:
                    print(f"{row.key.splitlines()[0]} {row.target} {','.join(raising(row))}: {said}{detail}")
        print(*lines(half, fates, left_out), sep="\n", flush=True)
    if keep:
        keep_verified(by_half, uncounted, int(count), int(seed))
    return 0


def raising(row: Row) -> tuple[str, ...]:
    """The scenarios in which a mutant raises; none of a training loop, which ``verify`` does not run."""
    if row.kind == KIND_TRAINING:
        return ()
    return tuple(name for name, label in row.labels.items() if label["label"] == RAISES)


def judged(rows: Sequence[Row]) -> Iterator[tuple[Row, str, str]]:
    """What became of each mutant of one target, or why it does not count; and in words what a reader wants to know."""
    first = rows[0]
    root, why = _installed(first)
    if root is None:
        yield from ((row, why, "") for row in rows)
        return
    path = root / first.file
    data = path.read_bytes()
    name = first.target.rpartition(".")[2]
    ran: list[tuple[Row, Ran]] = []
    for row in rows:
        try:
            job = job_for(path, apply(data, row.edits), name, raising(row), root)
        except (ValueError, SourceError):
            yield row, "cannot be parsed", ""
            continue
        if job is None:
            yield row, "its target is no class", ""
        else:
            ran.append((row, run(job)))
    if not ran:
        return
    scenarios = tuple(dict.fromkeys(scenario for row, _ in ran for scenario in raising(row)))
    variants = tuple(dict.fromkeys(o.variant for _, one in ran for o in one.outcomes if o.variant and _confirms(o)))
    unbroken = job_for(path, data, name, scenarios, root)
    assert unbroken is not None
    original = run(replace(unbroken, variants=variants))
    known = {(outcome.cell, outcome.error) for outcome in original.outcomes if _confirms(outcome)}
    for row, one in ran:
        if original.how not in SIGNATURE_ALONE:
            yield row, "its class is not built from its signature alone", f": {original.how}"
        elif not original.whole:
            yield row, "the unbroken class does not end in time", ""
        else:
            yield row, fate(raising(row), one, known), _detail(raising(row), one)


def fate(scenarios: Sequence[str], ran: Ran, known: set[tuple[tuple[str, str, str], str | None]]) -> str:
    """What a run says of a mutant that raises in these scenarios. ``known``: what is confirmed of the unbroken code."""
    confirmed = {o.scenario for o in ran.outcomes if _confirms(o) and (o.cell, o.error) not in known}
    if confirmed:
        return CONFIRMED if confirmed >= set(scenarios) else SOME
    if ran.how is None:
        return UNBUILT
    first = [outcome for outcome in ran.outcomes if not outcome.variant]
    return RAN if ran.whole and all(outcome.kind == CLEAN for outcome in first) else OTHER


def _confirms(outcome: Outcome) -> bool:
    return outcome.kind in CONFIRMING


def _detail(scenarios: Sequence[str], ran: Ran) -> str:
    """What was built, and what came of the cells that confirm nothing."""
    kinds = Counter(outcome.kind for outcome in ran.outcomes)
    errors = dict.fromkeys(o.error for o in ran.outcomes if not _confirms(o) and o.error and o.scenario in scenarios)
    built = dict.fromkeys(f"{outcome.built} with {outcome.inputs}" for outcome in ran.outcomes[:1])
    return f"; {dict(kinds)}; {'; '.join(built)}; {'; '.join(list(errors)[:2])}"


def _installed(row: Row) -> tuple[Path | None, str]:
    """The folder of the row's library as it is installed; None, and why, where that is not what was labelled."""
    library = libraries().get(row.library)
    try:
        distribution = importlib.metadata.distribution(library.name if library else row.library)
    except importlib.metadata.PackageNotFoundError:
        return None, f"{row.library}=={row.release} is not installed"
    root = Path(str(distribution.locate_file(""))).resolve()
    path = root / row.file
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != row.sha256:
        return None, f"{row.library}=={row.release} is not what is installed"
    return root, ""


def lines(half: str, fates: dict[str, Counter[str]], left_out: Counter[str]) -> Iterator[str]:
    """The figures of a half as text."""
    total = sum(fates.values(), Counter[str]())
    yield f"{half}: {total.total()} mutants that raise, of classes that verify builds from their signature alone"
    yield f"  {'operator':32}" + "".join(f"{name:>19}" for name in VERIFIED_FATES)
    for operator, counts in sorted(fates.items()):
        yield f"  {operator:32}" + "".join(f"{counts[name]:19}" for name in VERIFIED_FATES)
    yield f"  {'all':32}" + "".join(f"{total[name]:19}" for name in VERIFIED_FATES)
    yield f"  confirmed in every scenario: {total[CONFIRMED] / max(total.total(), 1):.1%}"
    for why, number in left_out.most_common():
        yield f"  {number} left out: {why}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
