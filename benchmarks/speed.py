"""What a check costs: CPU seconds of amplint and of TorchFix on the sources of timm.

    python benchmarks/speed.py [--timm DIR] [--torchfix PATH] [--runs N] [--torchfix-runs N] [--figures]

Counts user and system time of the whole process, start-up and child processes included, of one process each: ``amplint
check --isolated --no-cache --exit-zero --jobs 1`` and ``torchfix --select ALL -j 1``, in alternation. Both are set
against a process that only reads and parses the same files with :mod:`ast`. The two linters have different rules: the
ratio compares what a user waits for, not equal work.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from figures import results
from wheels import DownloadError, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMM = "timm==1.0.31"
TORCHFIX = "torchfix==0.7.0"
COMMAND = "python benchmarks/speed.py --figures"
ABOUT = "CPU time of a whole check beside TorchFix and `ast.parse`, the median of some runs on one machine."
PARSE = "import ast, pathlib, sys\nfor path in pathlib.Path(sys.argv[1]).rglob('*.py'): ast.parse(path.read_bytes())"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Compare the CPU time of amplint and TorchFix.")
    parser.add_argument("--timm", type=Path, metavar="DIR", help=f"the sources to check instead of {TIMM}")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="where already downloaded wheels lie")
    parser.add_argument("--torchfix", type=Path, metavar="PATH", help="an installed torchfix command")
    parser.add_argument("--runs", type=int, default=3, help="runs of amplint and of ast.parse (default 3)")
    parser.add_argument("--torchfix-runs", type=int, default=1, help="runs of TorchFix (default 1, may take minutes)")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    chosen = parser.parse_args(arguments)
    if chosen.figures and chosen.timm:
        parser.error(f"--figures are those of {TIMM}")
    with tempfile.TemporaryDirectory(prefix="amplint-speed-") as name:
        folder = Path(name).resolve()
        try:
            sources = chosen.timm or unpacked(TIMM, folder, chosen.wheels)
            torchfix = chosen.torchfix or (_install_torchfix(folder / "torchfix") if chosen.torchfix_runs else None)
        except (DownloadError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 2
        middle = _compare(sources, torchfix, chosen.runs, chosen.torchfix_runs)
    if chosen.figures:
        times = {name: {"CPU seconds": round(seconds, 2)} for name, seconds in middle.items()}
        times["amplint"]["times ast.parse"] = round(middle["amplint"] / middle["ast.parse"], 1)
        results.save("speed", COMMAND, about=ABOUT, seen={f"on {TIMM}": times})
    return 0


def _install_torchfix(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", TORCHFIX], check=True)
    return binaries / "torchfix"


def _compare(sources: Path, torchfix: Path | None, runs: int, torchfix_runs: int) -> dict[str, float]:
    files = list(sources.rglob("*.py"))
    size = sum(file.stat().st_size for file in files)
    print(f"{len(files)} files, {size / 1e6:.2f} MB; Python {platform.python_version()}, {os.cpu_count()} CPUs")
    python = [sys.executable]
    commands: dict[str, tuple[list[str], int]] = {"ast.parse": ([*python, "-c", PARSE, str(sources)], runs)}
    options = ["--isolated", "--no-cache", "--exit-zero", "--jobs", "1"]
    commands["amplint"] = ([*python, "-m", "amplint", "check", *options, str(sources)], runs)
    if torchfix is not None and torchfix_runs:
        commands["TorchFix"] = ([str(torchfix), "--select", "ALL", "-j", "1", str(sources)], torchfix_runs)
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for run in range(max(count for _, count in commands.values())):
        for name, (command, count) in commands.items():
            if run < count:
                seconds[name].append(cpu_seconds(command))
                print(f"{name:<9}  {seconds[name][-1]:8.2f} s", flush=True)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    for name in commands:
        print(f"{name:<9}  median {middle[name]:8.2f} s, {middle[name] / middle['ast.parse']:6.1f} times ast.parse")
    if "TorchFix" in middle:
        print(f"TorchFix takes {middle['TorchFix'] / middle['amplint']:.1f} times as much CPU as amplint")
    return middle


def cpu_seconds(command: Sequence[str]) -> float:
    """User and system time of a process and its children. Raises CalledProcessError where it fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
