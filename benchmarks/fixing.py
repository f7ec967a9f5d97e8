"""What ``--fix --unsafe-fixes`` does to whole packages.

    python benchmarks/fixing.py FOLDER... [--jobs N] [--seconds S] [--figures]

Each folder is a package's source, or holds packages one by one (``--each``). A copy of it is fixed, and these are
counted: files that no longer parse, files that a second run changes, findings that the fixing run reports and the next
check does not or the other way round, files of which ``--diff`` shows something else than what is then written, and
runs that end with status 2. Nothing is installed or run.

Leaves with status 1 where one of these is not 0.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import results

if TYPE_CHECKING:
    from collections.abc import Sequence

ABOUT = (
    "What `--fix --unsafe-fixes` does to whole packages in one run, and whether a second run would change or find "
    "anything else. A finding is told apart by its code, place and message."
)
COMMAND = "python benchmarks/fixing.py --each FOLDER --figures"
BROKEN = (
    "files that no longer parse",
    "files that a second run changes",
    "findings of the fixing run that the next check has not",
    "findings of the next check that the fixing run has not",
    "files of which --diff shows something else",
    "runs that failed",
)
_FLAGS = ("--isolated", "--no-cache", "--exit-zero", "--jobs=1")


@dataclass(slots=True)
class Outcome:
    """What came of one package."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def broken(self, what: str, places: Sequence[object]) -> None:
        """Count what should not be, and say where."""
        self.counts[what] += len(places)
        self.lines += [f"{self.name}: {what}: {place}" for place in places]


class _FailedError(Exception):
    """A run of amplint that left with another status than 0, or took too long."""


def fixed(package: Path, seconds: float) -> Outcome:
    """Fix a copy of a package and look at it again."""
    outcome = Outcome(package.name)
    with tempfile.TemporaryDirectory(prefix="amplint-fixing-") as folder:
        copy = Path(folder, package.name)
        shutil.copytree(package, copy, symlinks=True)
        try:
            _look(copy, outcome, seconds)
        except _FailedError as error:
            outcome.broken("runs that failed", [error])
    return outcome


def _look(copy: Path, outcome: Outcome, seconds: float) -> None:
    before = _contents(copy)
    found = _findings(_run(copy, "--output-format=json", seconds=seconds))
    outcome.counts["packages"] += 1
    outcome.counts["files"] += len(before)
    outcome.counts["findings"] += sum(found.values())
    if not any(found.values()):
        return
    outcome.counts["packages with findings"] += 1
    shown = _run(copy, "--diff", "--unsafe-fixes", seconds=seconds)
    told = _findings(_run(copy, "--fix", "--unsafe-fixes", "--output-format=json", seconds=seconds))
    after = _contents(copy)
    changed = [path for path in before if before[path] != after.get(path)]
    outcome.counts["files changed"] += len(changed)
    outcome.counts["findings left"] += sum(told.values())
    outcome.broken("files that no longer parse", [p for p in changed if _parses(before[p]) and not _parses(after[p])])
    outcome.broken("files of which --diff shows something else", _otherwise(copy, before, after, shown))
    again = _findings(_run(copy, "--output-format=json", seconds=seconds))
    outcome.broken("findings of the fixing run that the next check has not", sorted((told - again).elements()))
    outcome.broken("findings of the next check that the fixing run has not", sorted((again - told).elements()))
    _run(copy, "--fix", "--unsafe-fixes", "--output-format=json", seconds=seconds)
    twice = _contents(copy)
    outcome.broken("files that a second run changes", [path for path in after if after[path] != twice.get(path)])


def _run(copy: Path, *options: str, seconds: float) -> bytes:
    command = [sys.executable, "-m", "amplint", "check", *_FLAGS, *options, "."]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise _FailedError(f"{' '.join(options)}: longer than {seconds:g} s") from None
    if done.returncode != 0:
        last = next(iter(done.stderr.decode(errors="replace").strip().splitlines()[-1:]), "")
        raise _FailedError(f"{' '.join(options)}: status {done.returncode}: {last}")
    return done.stdout  # as bytes: text would lose the carriage returns of a diff


def _findings(text: bytes) -> Counter[str]:
    found: list[dict[str, Any]] = json.loads(text)
    return Counter(
        f"{Path(one['filename']).name}:{place['row']}:{place['column']} {one['code']} {one['message']}"
        for one in found
        for place in (one["location"],)
    )


def _contents(copy: Path) -> dict[str, bytes]:
    files = (path for path in copy.rglob("*") if path.is_file() and path.suffix in (".py", ".pyi"))
    return {str(path.relative_to(copy)): path.read_bytes() for path in files}


def _parses(data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError):
            return False
    return True


def _otherwise(copy: Path, before: dict[str, bytes], after: dict[str, bytes], shown: bytes) -> list[str]:
    """The files that the diff, applied to what was there, does not make what was written."""
    with tempfile.TemporaryDirectory(prefix="amplint-shown-") as folder:
        tree = Path(folder)
        for path, data in before.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(data)
        if shown:
            command = ["git", "apply", "--whitespace=nowarn", "-"]
            done = subprocess.run(command, input=shown, cwd=tree, capture_output=True, check=False)
            if done.returncode != 0:
                return [done.stderr.decode(errors="replace").strip().splitlines()[0]]
        return [path for path in after if (tree / path).read_bytes() != after[path]]


def main() -> int:
    """Run the command line and say the exit status."""
    parser = argparse.ArgumentParser(
        usage=__doc__.split("\n\n")[1].strip(), description="What --fix --unsafe-fixes does to whole packages."
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--each", action="store_true", help="each folder holds packages, one by one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=900, help="for each run of amplint (default: 900)")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    arguments = parser.parse_args()
    packages = [
        package
        for folder in arguments.folders
        for package in (sorted(path for path in folder.iterdir() if path.is_dir()) if arguments.each else [folder])
    ]
    total: Counter[str] = Counter()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(lambda package: fixed(package.resolve(), arguments.seconds), packages):
            total += outcome.counts
            for line in outcome.lines:
                print(line, flush=True)
    rows = {what: total[what] for what in (*[key for key in total if key not in BROKEN], *BROKEN)}
    for what, count in rows.items():
        print(f"{count:7,} {what}")
    if arguments.figures:
        results.save("fixing", COMMAND, about=ABOUT, first_sight=rows)
    return 1 if any(total[what] for what in BROKEN) else 0


if __name__ == "__main__":
    sys.exit(main())
