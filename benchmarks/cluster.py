"""Findings by rule per 10,000 lines over the packages of ``field.txt``, checked by the workers of a Dask cluster.

    pip install dask distributed
    python benchmarks/cluster.py --cache FOLDER [--sources FOLDER] [--workers N] [--scheduler ADDRESS]
                                [--list FILE] [--figures]

The releases are downloaded as wheels into the cache, and read there: nothing of theirs is installed or run. Those that
``sources`` has in folders ``NAME-VERSION`` are taken from there. Without an address the cluster is one of this
machine's processes. Failures are printed as they come, the figures at the end; ``--figures`` keeps them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem.releases import Release, Shelf, listed
from figures import results
from wheels import DownloadError

import amplint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.finding import Finding

LIST = Path(__file__).resolve().parent / "field.txt"
PER_LINES = 10_000
ABOUT = (
    "What a default check reports over released packages, whether right or wrong: how much there would be to read. "
    "Checked by the workers of a Dask cluster."
)
COMMAND = "python benchmarks/cluster.py --cache FOLDER --figures"


@dataclass(slots=True)
class Field:
    """The findings of some packages, each package with its lines of Python."""

    lines: dict[str, int]
    findings: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By package, code and certainty."""

    def per_lines(self, count: int) -> float:
        return round(count / sum(self.lines.values()) * PER_LINES, 2)

    def counted(self, part: int) -> Counter[str]:
        """Findings by package, code or certainty."""
        counts: Counter[str] = Counter()
        for key, count in self.findings.items():
            counts[key[part]] += count
        return counts

    def middle(self) -> float:
        """The median over the packages of findings per 10,000 lines."""
        found = self.counted(0)
        return round(statistics.median(found[name] / lines * PER_LINES for name, lines in self.lines.items()), 2)

    def figures(self) -> results.Figures:
        rows = {**dict(sorted(self.counted(2).items())), **dict(sorted(self.counted(1).items()))}
        packages = {key: {package for package, *rest in self.findings if key in rest} for key in rows}
        return {
            "packages": len(self.lines),
            "lines": sum(self.lines.values()),
            "findings": self.findings.total(),
            "findings per 10,000 lines": self.per_lines(self.findings.total()),
            "the same, the median of the packages": self.middle(),
            "packages without a finding": (len(self.lines) - len(self.counted(0)), len(self.lines)),
            "findings by certainty and rule": {
                key: {
                    "findings": count,
                    "per 10,000 lines": self.per_lines(count),
                    "packages": len(packages[key]),
                }
                for key, count in rows.items()
            },
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--cache", type=Path, required=True, metavar="FOLDER", help="where downloaded releases are kept"
    )
    parser.add_argument("--list", type=Path, metavar="FILE", help="other releases, one name==version a line")
    parser.add_argument("--sources", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--workers", type=int, help="processes of this machine; by default one for each CPU")
    parser.add_argument("--scheduler", help="the address of a cluster that runs already")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    arguments = parser.parse_args()
    if arguments.figures and arguments.list:
        parser.error(f"--figures are those of {LIST.name}")
    shelf = Shelf(arguments.cache, arguments.sources)
    try:
        folders = {release: shelf.folder(release).resolve() for release in listed(arguments.list or LIST)}
    except (DownloadError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    start = time.monotonic()
    field = Field({release.package: _lines(folder) for release, folder in folders.items()})
    for finding in _checked(folders.values(), arguments.workers, arguments.scheduler):
        field.findings[_package_of(finding, folders), finding.code, finding.certainty.value] += 1
    figures = field.figures()
    for name, value in figures.items():
        print(f"{name}: {value}" if not isinstance(value, dict) else f"{name}:")
        for key, row in value.items() if isinstance(value, dict) else ():
            print(f"  {key}: {row}")
    print(f"{time.monotonic() - start:.0f} s")
    if arguments.figures:
        results.save("field", COMMAND, about=ABOUT, seen=figures)
    return 0


def _checked(folders: Iterable[Path], workers: int | None, scheduler: str | None) -> Iterable[Finding]:
    from dask.distributed import Client, LocalCluster

    cluster = scheduler or LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with Client(cluster) as client:
        executor = client.get_executor()
        yield from amplint.check_paths(folders, isolated=True, executor=executor, on_failure=print)


def _package_of(finding: Finding, folders: dict[Release, Path]) -> str:
    return next(release.package for release, folder in folders.items() if folder in finding.filename.parents)


def _lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


if __name__ == "__main__":
    sys.exit(main())
