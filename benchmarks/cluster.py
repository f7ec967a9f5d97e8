"""Findings by rule per 10,000 lines over many folders, checked by the workers of a Dask cluster.

    pip install dask distributed
    python benchmarks/cluster.py FOLDER... [--workers N] [--scheduler ADDRESS]

Without an address the cluster is one of this machine's processes. Failures are printed as they come, the figures at the
end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import amplint

PER_LINES = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, help="processes of this machine; by default one for each CPU")
    parser.add_argument("--scheduler", help="the address of a cluster that runs already")
    arguments = parser.parse_args()
    from dask.distributed import Client, LocalCluster

    start = time.monotonic()
    cluster = arguments.scheduler or LocalCluster(
        n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None
    )
    with Client(cluster) as client:
        found = Counter(
            finding.code
            for finding in amplint.check_paths(
                arguments.folders, isolated=True, executor=client.get_executor(), on_failure=print
            )
        )
    lines = sum(path.read_bytes().count(b"\n") for folder in arguments.folders for path in folder.rglob("*.py"))
    for code, count in sorted(found.items()):
        print(f"{code}  {count:>6,}  {count / lines * PER_LINES:6.2f}")
    took = time.monotonic() - start
    print(f"{sum(found.values()):,} findings in {lines:,} lines; figures per {PER_LINES:,} lines; {took:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
