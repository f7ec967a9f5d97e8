"""Examples run: the ``reproduce()`` of a bad one fails, that of a good one, and of a bad one after its fix, does not.

Each runs in a process of its own, which this module is the program of. The parent's side does not import torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from amplint.examples.cases import Problem
from amplint.frozen import dataclass
from amplint.rule_base import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.examples.cases import Case

FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, FutureWarning, DeprecationWarning)
"""How a hazard shows when it is run."""
FAILED = 3
"""Status of a child process whose example failed so."""
TIMEOUT = 300
"""Seconds after which an example is given up."""


@dataclass(frozen=True, slots=True)
class Program:
    """The text of an example, the device whose policy is put over the CPU's kernels if it is emulated, and whether a
    deprecation counts as a failure."""

    text: str
    device: str | None
    deprecations: bool


def is_run(case: Case) -> bool:
    """Whether an example can be run: it has a ``reproduce()``, and a bad one is no evidence that is merely cited."""
    return "def reproduce():" in case.example.source and not (case.is_bad and case.rule.evidence is Evidence.CITED)


def program(case: Case, text: str) -> Program:
    """How to run a text in the place of an example's. Deprecations count for rules that claim no failure."""
    return Program(text, case.example.device if case.example.emulated else None, not case.rule.claims_failure)


def misrun(case: Case, fixed: str | None) -> Iterator[Problem]:
    """What is wrong with how an example runs, and how it does after its fixes."""
    status, said = run_in_child(program(case, case.example.source))
    if not case.is_bad:
        if status:
            yield Problem(case.where, None, f"reproduce() fails: {said}")
        return
    if not status:
        yield Problem(case.where, None, "reproduce() does not fail")
    elif status != FAILED:
        yield Problem(case.where, None, f"reproduce() fails in another way than a hazard does: {said}")
    if fixed is not None:
        status, said = run_in_child(program(case, fixed))
        if status:
            yield Problem(case.where, None, f"reproduce() fails after the fixes: {said}")


def run_in_child(job: Program) -> tuple[int, str]:
    """Run a program in a process of its own: its status, and the last line that it left on stderr."""
    command = [sys.executable, "-W", "ignore", "-m", "amplint.examples.running"]
    try:
        done = subprocess.run(
            command, input=json.dumps(asdict(job)), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, f"it takes longer than {TIMEOUT} seconds"
    lines = done.stderr.strip().splitlines()
    return done.returncode, lines[-1] if lines else f"its process ends with status {done.returncode}"


def run_here(job: Program) -> None:
    """Run a program in this process, with torch's random state as it was. Raises what it raises.

    Deprecations count only where nothing else fails.
    """
    _run(job.text, deprecations=False)
    if job.deprecations:
        _run(job.text, deprecations=True)


def _run(text: str, *, deprecations: bool) -> None:
    import torch

    namespace: dict[str, Any] = {"__name__": "example"}
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        if deprecations:
            warnings.filterwarnings("error", category=FutureWarning)
            warnings.filterwarnings("error", category=DeprecationWarning)
        torch.manual_seed(0)
        exec(compile(text, "example.py", "exec"), namespace)
        namespace["reproduce"]()


def main() -> None:
    """Run the program that stands on stdin."""
    job = Program(**json.load(sys.stdin))
    if job.device is not None:
        from amplint.emulation import install

        install(job.device)
    try:
        run_here(job)
    except FAILURES as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
