"""``python -m mutants.repeat FOLDER COUNT [HALF]...`` labels that many drawn mutants a second time."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

from halves import HALVES, LEARNED

from mutants.libraries import libraries
from mutants.rerun import relabel
from mutants.rows import files_of, load

SEED = 2


def main(folder: str, count: str, *halves: str) -> int:
    """Print for each half how many have the same label in every scenario, and which of the learned half do not.

    Leaves with 1 where fewer than 99.5% do.
    """
    same, total, why = Counter[str](), Counter[str](), Counter[str]()
    changed: list[tuple[str, dict[str, tuple[str, str | None]]]] = []
    known = libraries()
    chosen = halves or HALVES
    for half in chosen:
        rows = sorted((row for file in files_of(half, Path(folder)) for row in load(file)[0]), key=lambda row: row.key)
        drawn = random.Random(SEED).sample(rows, min(int(count) // len(chosen), len(rows)))
        for name in sorted({row.library for row in drawn}):
            of_library = [row for row in drawn if row.library == name]
            for row, labels in relabel(known[name], of_library, lambda _row, _path, data: data):
                if isinstance(labels, str):
                    why[labels[:60]] += 1
                    continue
                total[half] += 1
                again = {scenario: label.get("label") for scenario, label in labels.items()}
                pairs = {scenario: (label["label"], again.get(scenario)) for scenario, label in row.labels.items()}
                other = {scenario: (before, now) for scenario, (before, now) in pairs.items() if before != now}
                same[half] += not other
                if other and half == LEARNED:
                    changed.append((row.key, other))
    for half in chosen:
        share = same[half] / max(total[half], 1)
        print(f"{half}: the same labels in every scenario for {same[half]} of {total[half]} ({share:.1%})")
    for key, other in changed:
        print(f"  {key}: {', '.join(f'{s} was {before}, now {now}' for s, (before, now) in other.items())}")
    for reason, number in why.most_common(5):
        print(f"  {number} without a second label: {reason}")
    return 0 if sum(same.values()) >= 0.995 * sum(total.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
