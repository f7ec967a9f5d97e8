"""Recordings from child processes: a way of running in each, since a device's policy stays installed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from children import answers, environment

from dtype_truth.truth import Case, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHILD = "dtype_truth.record_child"


def record(library: str, scenario: str, device: str, models: Sequence[str], seconds: float) -> Iterator[Recording]:
    """Run the models one after the other. A model that ends its process or takes too long is recorded as failed."""
    for answer in answers(CHILD, [library, scenario, device], models, seconds):
        if answer.why:
            yield Recording(Case(library, answer.name, scenario, device), error=answer.why)
        else:
            yield Recording.from_json(json.loads(answer.line))


def known_models(library: str) -> list[str]:
    """Every model of a library, by name."""
    done = subprocess.run(
        [sys.executable, "-m", CHILD, library], capture_output=True, text=True, check=True, env=environment()
    )
    names: list[str] = json.loads(done.stdout)
    return names
