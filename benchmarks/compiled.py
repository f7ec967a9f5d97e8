"""What compiling amplint saves, and whether it finds the same, on the releases of ``speed.txt``.

    python benchmarks/compiled.py --cache FOLDER [--sources FOLDER] [--wheel PATH] [--list FILE] [--figures]

Builds the compiled wheel with this Python, or takes ``--wheel``, and checks each release with it and with the Python
files of the same wheel, in alternation, by one process each and without a cache, what is merely possible included. The
findings with their fixes must be the same text. Leaves with status 1 where they are not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from ecosystem.releases import Shelf, listed
from figures import results
from wheels import DownloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).resolve().parent / "speed.txt"
COMMAND = "python benchmarks/compiled.py --cache FOLDER --figures"
ABOUT = (
    "CPU time of a whole check by one process, start-up included, with amplint as pure Python and with its inference "
    "compiled by mypyc, and whether both say the same, what is merely possible too."
)
OPTIONS = ["--isolated", "--no-cache", "--exit-zero", "--jobs", "1", "--pedantic", "--output-format", "json"]
RUNS = 3


class BuildError(Exception):
    """The compiled wheel cannot be built."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Compare compiled amplint with pure Python.")
    parser.add_argument("--cache", type=Path, required=True, metavar="FOLDER", help="where downloads are kept")
    parser.add_argument("--sources", type=Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--list", type=Path, metavar="FILE", help="other releases, one name==version a line")
    parser.add_argument("--wheel", type=Path, help="a compiled wheel for this Python")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each (default {RUNS})")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    chosen = parser.parse_args(arguments)
    if chosen.figures and chosen.list:
        parser.error(f"--figures are those of {LIST.name}")
    shelf = Shelf(chosen.cache, chosen.sources)
    rows: dict[str, dict[str, results.Value]] = {}
    with tempfile.TemporaryDirectory(prefix="amplint-compiled-") as name:
        try:
            compiled, pure = unpacked_ways(chosen.wheel or build(Path(name) / "wheel"), Path(name))
            for release in listed(chosen.list or LIST):
                row = compared(shelf.folder(release), compiled, pure, chosen.runs)
                rows[release.package] = row
                print(f"{release}: " + ", ".join(f"{what} {value}" for what, value in row.items()), flush=True)
        except (BuildError, DownloadError, OSError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 2
    saved = [float(str(row["saved %"])) for row in rows.values()]
    print(f"saved: {min(saved)} to {max(saved)}%, median {statistics.median(saved):.0f}%")
    if chosen.figures:
        results.save("compiled", COMMAND, about=ABOUT, seen={"packages": len(rows), "CPU seconds": rows})
    return 0 if all(row["the same"] == "yes" for row in rows.values()) else 1


def build(into: Path) -> Path:
    """The compiled wheel. Raises BuildError, with what the build said."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into)]
    with tempfile.TemporaryDirectory(prefix="amplint-tree-") as name:
        tree = Path(name) / "amplint"
        unwanted = shutil.ignore_patterns(".git", "*.egg-info", "__pycache__", ".*_cache", "*.so")
        shutil.copytree(ROOT, tree, ignore=lambda at, names: {*unwanted(at, names), *_built(Path(at), names)})
        environment = {**os.environ, "AMPLINT_COMPILED": "1"}
        done = subprocess.run(command, check=False, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"the wheel cannot be built:\n{done.stdout}{done.stderr}")
    (wheel,) = into.glob("*.whl")
    return wheel


def _built(folder: Path, names: Sequence[str]) -> list[str]:
    return [name for name in names if folder / name in (ROOT / "build", ROOT / "dist")]


def unpacked_ways(wheel: Path, into: Path) -> tuple[Path, Path]:
    """Two folders to import amplint from: compiled, and the same without what was compiled."""
    compiled, pure = into / "compiled", into / "pure"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(compiled)
    shutil.copytree(compiled, pure, ignore=shutil.ignore_patterns("*.so", "*.pyd"))
    return compiled, pure


def compared(sources: Path, compiled: Path, pure: Path, runs: int) -> dict[str, results.Value]:
    """What both ways cost on a folder, and whether they say the same."""
    ways = {"pure": pure, "compiled": compiled}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    said: dict[str, set[str]] = {name: set() for name in ways}
    for _ in range(runs):
        for name, folder in ways.items():
            took, text = check(folder, sources)
            seconds[name].append(took)
            said[name].add(text)
    middle = {name: statistics.median(found) for name, found in seconds.items()}
    row: dict[str, results.Value] = {name: round(value, 2) for name, value in middle.items()}
    row["saved %"] = round(100 * (1 - middle["compiled"] / middle["pure"]))
    row["findings"] = min(said["pure"]).count('"fingerprint"')
    return row | {"the same": "yes" if said["pure"] == said["compiled"] and len(said["pure"]) == 1 else "no"}


def check(amplint: Path, sources: Path) -> tuple[float, str]:
    """CPU seconds of a check with the amplint of a folder, and its findings. Raises CalledProcessError."""
    command = [sys.executable, "-m", "amplint", "check", *OPTIONS, str(sources)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        environment = {**os.environ, "PYTHONPATH": str(amplint)}
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd=amplint, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command)
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, out.read()


if __name__ == "__main__":
    sys.exit(main())
