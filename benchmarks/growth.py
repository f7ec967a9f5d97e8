"""What a file more, and a finding more, cost in a large check beside a small one.

    python benchmarks/growth.py [--counts SMALL LARGE] [--kind NAME...] [--runs N] [--figures]

Checks packages of made-up files that import each other, and single files of the blocks of ``findings_cost.py``, by one
process without a cache, and counts its user and system time; what the same takes of one file or block is start-up, and
is taken off. The small checks are run before and after the large one, and their median counts: what else the machine
does changes the cost of a check by a fifth.

Leaves with status 1 where the large check costs more than 1.3 times as much for each as the small one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from figures import results
from findings_cost import KINDS, program
from speed import OPTIONS, cost

MOST = 1.3
FILES = "files"
COMMAND = "python benchmarks/growth.py --figures"
ABOUT = (
    "CPU milliseconds for each file of a package of made-up files that import each other, and for each flagged block "
    "of one file, by kind of block: in a small and in a large check, start-up taken off."
)


def module(number: int, count: int) -> str:
    """A file of a package of so many, with a finding in what it runs, which uses another one."""
    other = (7 * number + 1) % count
    return f"""\
import torch
from torch import nn

from .part_{other} import scaled_{other}


class Block{number}(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layer = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, table):
        x = scaled_{other}(self.norm(x))
        return torch.matmul(self.layer(x), table.float())


def scaled_{number}(x, least=1e-8):
    with torch.cuda.amp.autocast():
        return x / (x.norm(dim=-1, keepdim=True) + least)


if Block{number}(4).layer.in_features != 4:
    raise ValueError
"""


def made(folder: Path, kind: str, count: int) -> Path:
    """Write what is checked."""
    target = folder / f"{kind}_{count}"
    package = target / "package"
    package.mkdir(parents=True)
    if kind != FILES:
        (package / "blocks.py").write_text(program(kind, count), encoding="utf-8")
        return target
    (package / "__init__.py").touch()
    for number in range(count):
        (package / f"part_{number}.py").write_text(module(number, count), encoding="utf-8")
    return target


def seconds(target: Path) -> float:
    """The CPU time of a check."""
    return cost([sys.executable, "-m", "amplint", "check", *OPTIONS, str(target)]).seconds


def compared(folder: Path, kind: str, small: int, large: int, runs: int) -> tuple[float, float]:
    """Milliseconds for each in the small check, and in the large one."""
    targets = {count: made(folder, kind, count) for count in (1, small, large)}
    order = [*(1, small) * runs, large, *(1, small) * runs]
    spent: dict[int, list[float]] = {count: [] for count in targets}
    for count in order:
        spent[count].append(seconds(targets[count]))
    start_up, few, many = (statistics.median(spent[count]) for count in targets)
    return 1000 * (few - start_up) / (small - 1), 1000 * (many - start_up) / (large - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--counts", type=int, nargs=2, default=(100, 10_000), metavar=("SMALL", "LARGE"))
    parser.add_argument("--kind", choices=(FILES, *KINDS), nargs="+", default=[FILES, *KINDS])
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="small checks before and after (default 3)")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    arguments = parser.parse_args()
    small, large = arguments.counts
    rows: dict[str, dict[str, results.Value]] = {}
    worst = 0.0
    for kind in arguments.kind:
        with tempfile.TemporaryDirectory(prefix="amplint-growth-") as name:
            few, many = compared(Path(name).resolve(), kind, small, large, arguments.runs)
        worst = max(worst, many / few)
        rows[kind] = {f"of {small:,}": round(few, 2), f"of {large:,}": round(many, 2), "times": round(many / few, 2)}
        print(kind, rows[kind], flush=True)
    if arguments.figures:
        results.save("growth", COMMAND, about=ABOUT, seen={"CPU milliseconds for each": rows})
    return 1 if worst > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
