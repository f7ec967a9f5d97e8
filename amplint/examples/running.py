"""Examples run: the ``reproduce()`` of a bad one fails, that of a good one, and of a bad one after its fix, does not.

Each runs in a process of its own, whose program is ``main``. The parent's side does not import torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.examples.cases import Problem
from amplint.frozen import dataclass
from amplint.rule_base import Evidence
from amplint.verify.warm import end, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.examples.cases import Case

FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, FutureWarning, DeprecationWarning)
"""How a hazard shows when it is run."""
FAILED = 3
"""Status of a child process whose example failed so."""
_RUN = "from amplint.examples.running import main; main()"
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
    with tempfile.TemporaryDirectory(prefix="amplint-example-", ignore_cleanup_errors=True) as folder:
        asked, said = Path(folder) / "job.json", Path(folder) / "said"
        asked.write_text(json.dumps(asdict(job)))
        with said.open("wb") as output:
            process = start(_RUN, str(asked), Path.cwd(), {}, output.fileno())
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            return 1, f"it takes longer than {TIMEOUT} seconds"
        finally:
            status = end(process)
        lines = said.read_text(errors="replace").strip().splitlines()
        return status, lines[-1] if lines else f"its process ends with status {status}"


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
    """Run the program in the file that the first argument names. What it prints is left out."""
    job = Program(**json.loads(Path(sys.argv[1]).read_text()))
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if job.device is not None:
        from amplint.emulation import install

        install(job.device)
    try:
        run_here(job)
    except FAILURES as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        sys.exit(FAILED)
