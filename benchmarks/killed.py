"""What ``kill -9`` leaves of a tree that is being fixed.

    python benchmarks/killed.py [--kills N] [--seed N] [--figures]

Lets ``--fix`` loose on a tree of small files in a process of its own, ends that process at a random moment, mostly
while it writes, every second time with all of its group, and looks at every file once the child that writes has ended
too: each has to hold what it held, or what it holds after an undisturbed run, and nothing else may lie in the tree.

Leaves with status 1 where a file is lost or half written, or another is left behind.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from figures import results

from amplint.config import Config
from amplint.engine import Task, check_files
from amplint.finding import Applicability
from amplint.judging import judging_options
from amplint.plugins import load_rules

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = "python benchmarks/killed.py --figures"
ABOUT = (
    "What `kill -9` at random moments leaves of a tree that is being fixed, mostly while files are written: of the "
    "process alone, or of all of its group."
)
FILES = 60
OPTIONS = judging_options(Config(), load_rules(), fix=Applicability.SAFE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    counts: Counter[str] = Counter(dict.fromkeys(("lost", "half written", "left behind"), 0))
    with tempfile.TemporaryDirectory(prefix="amplint-killed-") as name:
        folder = Path(name).resolve()
        before = _material()
        _undisturbed(folder / "first", before)
        took, wrote, after = _undisturbed(folder / "whole", before)
        print(f"{sum(before[name] != after[name] for name in before)} of {len(before)} files are fixed in {took:.2f} s")
        for number in range(arguments.kills):
            tree = folder / str(number)
            writing = chance.random() < 0.9
            seconds = chance.uniform(0.0, wrote if writing else took)
            _killed(tree, before, seconds, writing=writing, kill=os.killpg if number % 2 else os.kill)
            counts.update(_found(tree, before, after))
            shutil.rmtree(tree)
    for what, count in counts.items():
        print(f"{what}: {count}")
    if arguments.figures:
        results.save("killed", COMMAND, about=ABOUT, seen={"kills": arguments.kills, **counts})
    return 1 if any(counts[what] for what in ("lost", "half written", "left behind")) else 0


def _material() -> dict[str, bytes]:
    """Files with a safe fix, by name, of some sizes."""
    code = (
        "import torch\n\n\ndef step(model, batch):\n    with torch.cuda.amp.autocast():\n        return model(batch)\n"
    )
    return {f"file_{number}.py": (code + "# more\n" * 10 ** (number % 4)).encode() for number in range(FILES)}


def _undisturbed(tree: Path, before: dict[str, bytes]) -> tuple[float, float, dict[str, bytes]]:
    """How long fixing takes, of that how long writing does, and what files hold then."""
    start = time.monotonic()
    _copy(tree, before)
    _check(tree, before)
    took = time.monotonic() - start
    changed = [path.stat().st_ctime for path in tree.iterdir()]
    return took, max(changed) - min(changed), {path.name: path.read_bytes() for path in tree.iterdir()}


def _killed(
    tree: Path, before: dict[str, bytes], seconds: float, *, writing: bool, kill: Callable[[int, int], None]
) -> None:
    """Fix the files below a new folder in a process that is ended some seconds after it begins, or begins to write."""
    _copy(tree, before)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _check(tree, before)
        os._exit(0)
    os.setpgid(child, child)
    first = min(before)
    while writing and (tree / first).stat().st_size == len(before[first]):
        time.sleep(0.0002)
    time.sleep(seconds)
    kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(writer)
    os.read(reader, 1)  # which ends with the last process that holds the other side
    os.close(reader)


def _copy(tree: Path, before: dict[str, bytes]) -> None:
    tree.mkdir()
    for name, data in before.items():
        (tree / name).write_bytes(data)


def _check(tree: Path, before: dict[str, bytes]) -> None:
    for _ in check_files([Task(tree / name, len(data), OPTIONS) for name, data in before.items()], jobs=1):
        pass


def _found(tree: Path, before: dict[str, bytes], after: dict[str, bytes]) -> Counter[str]:
    counts: Counter[str] = Counter()
    held = {path.name: path.read_bytes() for path in tree.iterdir()}
    counts["left behind"] = len(held.keys() - before.keys())
    counts["lost"] = len(before.keys() - held.keys())
    for name in held.keys() & before.keys():
        counts["half written"] += held[name] not in (before[name], after[name])
    written = sum(held.get(name) == after[name] != before[name] for name in before)
    whole = sum(before[name] != after[name] for name in before)
    counts[
        "killed " + ("before a write" if not written else "after the last" if written == whole else "in between")
    ] += 1
    return counts


if __name__ == "__main__":
    sys.exit(main())
