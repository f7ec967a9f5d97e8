"""``python -m mutants.label_library LIBRARY FILE MOST SECONDS`` appends a library's labels to a file."""

from __future__ import annotations

import sys
from pathlib import Path

from mutants.labelling import label_library
from mutants.libraries import libraries


def main(name: str, file: str, most: str, seconds: str) -> None:
    """What the module says; prints how many there are, and why others are not."""
    tally = label_library(libraries()[name], Path(file), int(most), float(seconds))
    print(f"{name}: {tally.rows} mutants of {len(tally.operators)} operators")
    for why, count in tally.thrown_out.most_common(12):
        print(f"  {count} {why}")


if __name__ == "__main__":
    main(*sys.argv[1:])
