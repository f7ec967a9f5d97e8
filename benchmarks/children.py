"""Child processes that work through a list of names: one that ends or stalls its process costs no other."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BENCHMARKS = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Answer:
    """The line that a child wrote for a name, or ``why`` there is none."""

    name: str
    line: bytes = b""
    why: str = ""


def answers(module: str, arguments: Sequence[str], names: Sequence[str], seconds: float) -> Iterator[Answer]:
    """What ``python -m module ARGUMENTS NAMES`` writes: a line for each name, in order.

    Where a name ends the process, or takes longer than ``seconds``, another process goes on with those after it.
    """
    left = list(names)
    while left:
        command = [sys.executable, "-m", module, *arguments, *left]
        # without a buffer: what select() does not see would wait in it
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), bufsize=0
        ) as child:
            assert child.stdout is not None
            while left:
                name = left.pop(0)
                ready = select.select([child.stdout], [], [], seconds)[0]
                line = child.stdout.readline() if ready else b""
                if not line:
                    child.kill()
                    yield Answer(name, why="the process ended" if ready else f"not within {seconds:.0f} s")
                    break
                yield Answer(name, line)


def environment() -> dict[str, str]:
    """The environment of a child: offline, one thread, this checkout."""
    paths = os.pathsep.join(filter(None, (str(BENCHMARKS.parent), str(BENCHMARKS), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
