"""A check of everything that is installed: does amplint survive it, how long does it take, what does it find?

    python benchmarks/site_packages.py FOLDER [--jobs N]

Leaves with status 1 if amplint fails, or its messages hold a traceback or an internal error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CRASH = re.compile(r"Traceback|internal error")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Check a whole site-packages folder.")
    parser.add_argument("folder", type=Path, help="a site-packages folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each CPU)")
    chosen = parser.parse_args(arguments)
    command = [sys.executable, "-m", "amplint", "check", "--isolated", "--no-cache", "--exit-zero"]
    command += ["--jobs", str(chosen.jobs), str(chosen.folder)]
    files = subprocess.run([*command, "--show-files"], capture_output=True, text=True, check=False).stdout.splitlines()
    with tempfile.TemporaryDirectory(prefix="amplint-site-packages-") as name:
        report = Path(name) / "report.json"
        before, start = os.times(), time.monotonic()
        options = ["--output-format", "json", "--output-file", str(report)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        wall, after = time.monotonic() - start, os.times()
        findings = json.loads(report.read_text(encoding="utf-8")) if report.exists() else []
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{len(files):,} files, {len(findings):,} findings, {wall:.1f} s, {cpu:.1f} s of CPU")
    for (code, title), count in sorted(Counter((f["code"], f["name"]) for f in findings).items()):
        print(f"{count:>7,}  {code}  {title}")
    crashes = sum(_CRASH.search(line) is not None for line in done.stderr.splitlines())
    if crashes or done.returncode != 0:
        print(done.stderr.rstrip())
    print(f"status {done.returncode}, {crashes} crashes")
    return 1 if crashes or done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
