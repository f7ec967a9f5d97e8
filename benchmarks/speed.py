"""What a check costs: CPU seconds of amplint, beside ``ast.parse`` and TorchFix, on the releases of ``speed.txt``.

    python benchmarks/speed.py --cache FOLDER [--sources FOLDER] [--runs N] [--torchfix PATH] [--torchfix-runs N]
                               [--list FILE] [--figures]

Counts user and system time of the whole process, start-up and child processes included, of one process each: ``amplint
check --isolated --no-cache --exit-zero --jobs 1`` and ``torchfix --select ALL -j 1``, in alternation. Both are set
against a process that only reads and parses the same files with :mod:`ast`. The two linters have different rules: the
ratio compares what a user waits for, not equal work. The memory is the most that amplint's process had at a time.
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
from typing import TYPE_CHECKING, NamedTuple

from ecosystem.releases import Shelf, listed
from figures import results
from wheels import DownloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

LIST = Path(__file__).resolve().parent / "speed.txt"
TORCHFIX = "torchfix==0.7.0"
COMMAND = "python benchmarks/speed.py --cache FOLDER --figures"
ABOUT = "CPU time of a whole check by one process beside `ast.parse` and TorchFix, start-up included, on one machine."
PARSE = (
    "import ast, pathlib, sys, warnings\nwarnings.simplefilter('ignore')\n"
    "for path in pathlib.Path(sys.argv[1]).rglob('*.py'):\n"
    "    try: ast.parse(path.read_bytes())\n"
    "    except SyntaxError: pass"
)
OPTIONS = ["--isolated", "--no-cache", "--exit-zero", "--jobs", "1"]


class Cost(NamedTuple):
    """What a process took: CPU seconds, and the most memory at a time, in megabytes."""

    seconds: float
    memory: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Compare the CPU time of amplint with that of others.")
    parser.add_argument("--torchfix", type=Path, metavar="PATH", help="an installed torchfix command")
    parser.add_argument("--torchfix-runs", type=int, default=1, help="runs of TorchFix (default 1, may take minutes)")
    chosen = chosen_by(parser, arguments)
    shelf = Shelf(chosen.cache, chosen.sources)
    rows: dict[str, dict[str, results.Value]] = {}
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory(prefix="amplint-speed-") as name:
        try:
            torchfix = chosen.torchfix or (_install_torchfix(Path(name)) if chosen.torchfix_runs else None)
            for release in listed(chosen.list or LIST):
                row = _compared(shelf.folder(release), torchfix, chosen.runs, chosen.torchfix_runs)
                rows[release.package] = row
                print(f"{release}: " + ", ".join(f"{what} {value}" for what, value in row.items()), flush=True)
        except (DownloadError, OSError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 2
    times = [float(str(row["times ast.parse"])) for row in rows.values()]
    print(f"times ast.parse: {min(times)} to {max(times)}, median {statistics.median(times):.1f}")
    if chosen.figures:
        results.save("speed", COMMAND, about=ABOUT, seen={"packages": len(rows), "CPU seconds": rows})
    return 0


def chosen_by(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of a benchmark over the releases of ``speed.txt``, or of another list, which keeps no figures."""
    parser.add_argument("--cache", type=Path, required=True, metavar="FOLDER", help="where downloads are kept")
    parser.add_argument("--sources", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--list", type=Path, metavar="FILE", help="other releases, one name==version a line")
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    chosen = parser.parse_args(arguments)
    if chosen.figures and chosen.list:
        parser.error(f"--figures are those of {LIST.name}")
    return chosen


def _install_torchfix(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([binaries / "python", "-m", "pip", "install", "--quiet", TORCHFIX], check=True)
    return binaries / "torchfix"


def _compared(sources: Path, torchfix: Path | None, runs: int, torchfix_runs: int) -> dict[str, results.Value]:
    python = [sys.executable]
    commands: dict[str, tuple[list[str], int]] = {"ast.parse": ([*python, "-c", PARSE, str(sources)], runs)}
    commands["amplint"] = ([*python, "-m", "amplint", "check", *OPTIONS, str(sources)], runs)
    if torchfix is not None and torchfix_runs:
        commands["TorchFix"] = ([str(torchfix), "--select", "ALL", "-j", "1", str(sources)], torchfix_runs)
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for run in range(max(count for _, count in commands.values())):
        for name, (command, count) in commands.items():
            if run < count:
                costs[name].append(cost(command))
    middle = {name: statistics.median(one.seconds for one in found) for name, found in costs.items()}
    row: dict[str, results.Value] = {"lines": sum(file.read_bytes().count(b"\n") for file in sources.rglob("*.py"))}
    row |= {name: round(seconds, 2) for name, seconds in middle.items()}
    row["times ast.parse"] = round(middle["amplint"] / middle["ast.parse"], 1)
    if "TorchFix" in middle:
        row["TorchFix by amplint"] = round(middle["TorchFix"] / middle["amplint"], 1)
    return row | {"megabytes": max(one.memory for one in costs["amplint"])}


def cost(command: Sequence[str], output: int = subprocess.DEVNULL, modules: Path | None = None) -> Cost:
    """User and system time of a process and its children, and its memory. Raises CalledProcessError where it fails.

    ``output`` is the file that it writes to; ``modules`` a folder that it imports from before all others.
    """
    environment = {**os.environ, "PYTHONPATH": str(modules)} if modules is not None else None
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, env=environment, cwd=modules)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024)


if __name__ == "__main__":
    sys.exit(main())
