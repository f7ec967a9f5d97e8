"""``python -m mutants.refresh FOLDER [LIBRARY]...`` gives the mutants at hand the labels that they have now.

For when what builds and runs their classes was mended. A mutant whose class is no longer built, or does not run clean
unbroken any more, goes; one that got no answer in time keeps its labels. What ran clean of the originals stays as it
was written down.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from mutants.libraries import libraries
from mutants.rerun import relabel
from mutants.rows import Row, load, write

GONE = "no target"
"""What the reason begins with for which a mutant of a class that is not built has no labels."""


def main(folder: str, *names: str) -> None:
    """Rewrite the labels of these libraries, all by default; prints how many changed and went in each."""
    for name, library in sorted(libraries().items()):
        path = Path(folder) / library.half / f"{name}.jsonl"
        if path.exists() and (not names or name in names):
            print(f"{name}: {_refreshed(name, path)}", flush=True)


def _refreshed(name: str, path: Path) -> str:
    rows, originals = load(path)
    again = {row.key: labels for row, labels in relabel(libraries()[name], rows, lambda _row, _path, data: data)}
    tally: Counter[str] = Counter()
    kept: list[Row] = []
    for row in rows:
        labels = again.get(row.key, "not run")
        if isinstance(labels, dict):
            tally["changed" if _told(labels) != _told(row.labels) else "as before"] += 1
            kept.append(replace(row, labels=labels))
        elif labels.startswith(GONE):
            tally["gone"] += 1
        else:
            tally["without an answer, kept"] += 1
            kept.append(row)
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    write(beside, [*kept, *originals])
    beside.replace(path)
    return ", ".join(f"{count} {what}" for what, count in sorted(tally.items()))


def _told(labels: dict[str, dict[str, object]]) -> dict[str, object]:
    return {scenario: label.get("label") for scenario, label in labels.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
