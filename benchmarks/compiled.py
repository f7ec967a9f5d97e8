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
from speed import LIST, OPTIONS, chosen_by, cost
from wheels import DownloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "python benchmarks/compiled.py --cache FOLDER --figures"
ABOUT = (
    "CPU time of a whole check by one process, start-up included, with amplint as pure Python and with its inference "
    "compiled by mypyc, and whether both say the same, what is merely possible too."
)
SOURCES = ("amplint", "rules", "pyproject.toml", "setup.py", "README.md", "LICENSE")
"""What the wheel is built from."""


class BuildError(Exception):
    """The compiled wheel cannot be built."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Compare compiled amplint with pure Python.")
    parser.add_argument("--wheel", type=Path, help="a compiled wheel for this Python")
    chosen = chosen_by(parser, arguments)
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
        for part in SOURCES:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, Path(name) / part, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
            else:
                shutil.copy(ROOT / part, name)
        environment = {**os.environ, "AMPLINT_COMPILED": "1"}
        done = subprocess.run(command, check=False, cwd=name, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"the wheel cannot be built:\n{done.stdout}{done.stderr}")
    (wheel,) = into.glob("*.whl")
    return wheel


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
    command = [sys.executable, "-m", "amplint", "check", *OPTIONS, "--pedantic", "--output-format", "json"]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        took = cost([*command, str(sources)], out.fileno(), amplint)
        out.seek(0)
        return took.seconds, out.read()


if __name__ == "__main__":
    sys.exit(main())
