"""Recordings from child processes: a way of running in each, since a device's policy stays installed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dtype_truth.truth import Case, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHILD = "dtype_truth.record_child"
BENCHMARKS = Path(__file__).resolve().parent.parent


def record(library: str, scenario: str, device: str, models: Sequence[str], seconds: float) -> Iterator[Recording]:
    """Run the models one after the other. A model that ends its process or takes too long is recorded as failed."""
    left = list(models)
    while left:
        for made in _one_child(library, scenario, device, left, seconds):
            left.remove(made.case.model)
            yield made


def _one_child(library: str, scenario: str, device: str, models: list[str], seconds: float) -> Iterator[Recording]:
    command = [sys.executable, "-m", CHILD, library, scenario, device, *models]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True
    ) as child:
        assert child.stdout is not None
        for model in models:
            ready = select.select([child.stdout], [], [], seconds)[0]
            line = child.stdout.readline() if ready else ""
            if not line:
                child.kill()
                why = "the process ended" if ready else f"not within {seconds:.0f} s"
                yield Recording(Case(library, model, scenario, device), error=why)
                return
            yield Recording.from_json(json.loads(line))


def known_models(library: str) -> list[str]:
    """Every model of a library, by name."""
    done = subprocess.run(
        [sys.executable, "-m", CHILD, library], capture_output=True, text=True, check=True, env=environment()
    )
    names: list[str] = json.loads(done.stdout)
    return names


def environment() -> dict[str, str]:
    """The environment of a child that builds models: offline, one thread, this checkout."""
    paths = os.pathsep.join(filter(None, (str(BENCHMARKS.parent), str(BENCHMARKS), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
