"""Write ``docs/figures.md`` from what the benchmarks kept.

    python benchmarks/figures [--results FOLDER] [--page FILE]

A benchmark that is run with ``--figures`` keeps its figures in ``benchmarks/figures/results/NAME.json``, with the
version of amplint, the date and the command. This makes the page of them; nothing is run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from figures.page import page
from figures.results import FOLDER, load

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).resolve().parents[2] / "docs" / "figures.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and say whether it changed."""
    parser = argparse.ArgumentParser(prog="figures", description="The page of all figures.")
    parser.add_argument("--results", type=Path, default=FOLDER, metavar="FOLDER", help="(default: the project's own)")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="(default: docs/figures.md)")
    chosen = parser.parse_args(arguments)
    results = load(chosen.results)
    if not results:
        print(f"{chosen.results} holds no figures: run a benchmark with --figures", file=sys.stderr)
        return 2
    text = page(results)
    same = chosen.page.exists() and chosen.page.read_text(encoding="utf-8") == text
    if not same:
        chosen.page.write_text(text, encoding="utf-8")
    print(f"{chosen.page.name}: {len(results)} benchmarks, {'as before' if same else 'written'}")
    return 0
