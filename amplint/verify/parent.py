"""Runs a job in a child process, within its limits, and reads what came of each cell whatever became of the child."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass
from amplint.verify.job import OTHER, Cell, Job, Outcome
from amplint.verify.warm import end, start

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from amplint.verify.warm import Forked

_RUN = "from amplint.verify.child import main; main()"
_RESTARTS = 2
"""How often a job goes on after a cell that ended its process."""


@dataclass
class Report:
    """What a job gave. ``target`` is the class that was built, ``built`` what was made of it first; ``broken`` says why
    nothing was. ``modes`` are those of what was built first."""

    target: str | None = None
    how: str | None = None
    built: str = ""
    modes: tuple[str, ...] = ()
    outcomes: list[Outcome] = field(default_factory=list)
    broken: str | None = None
    advice: str = ""
    asked_capability: bool = False
    torch: str = ""


def run_job(job: Job, progress: Callable[[str], None] | None = None) -> Report:
    """Run every cell of a job. Never raises for what the code under test does.

    A cell that ends or outlives its process is ``other`` with the reason; the cells after it run in a new process,
    within what is left of the time.
    """
    report = Report()
    deadline = time.monotonic() + job.timeout
    skip = list(job.skip)
    for _ in range(1 + _RESTARTS):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        end = _run_once(replace(job, skip=tuple(skip), timeout=left), report, progress)
        skip = [*job.skip, *(o.cell for o in report.outcomes)]
        if end is None or report.broken is not None:
            return report
        if end.cell is None:
            report.broken = end.reason
            return report
        variant, scenario, mode = end.cell
        ended = Outcome(scenario, mode, OTHER, round(end.seconds, 3), error=end.reason, variant=variant)
        report.outcomes.append(replace(ended, built=end.built))
        skip.append(end.cell)
    done = {o.cell for o in report.outcomes}
    for scenario in job.scenarios:
        for mode in report.modes:
            if ("", scenario, mode) not in done:
                error = "not run: earlier runs used up the time or ended the process"
                report.outcomes.append(Outcome(scenario, mode, OTHER, 0.0, error=error, built=report.built))
    return report


@dataclass(frozen=True)
class _End:
    """How a child ended too early: the cell it was in (None while it was building), why, and what was built there."""

    cell: Cell | None
    reason: str
    seconds: float
    built: str


def _run_once(job: Job, report: Report, progress: Callable[[str], None] | None) -> _End | None:
    with tempfile.TemporaryDirectory(prefix="amplint-verify-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        job = replace(job, results=str(scratch / "results"))
        (scratch / "job.json").write_text(json.dumps(job.to_json()))
        (scratch / "results").touch()
        (scratch / "work").mkdir()
        reading, writing = os.pipe()
        tail: deque[bytes] = deque(maxlen=64)
        drain = threading.Thread(target=_drain, args=(reading, tail), daemon=True)
        drain.start()
        try:
            process = _start(scratch, writing, fork=job.run_on == "cpu")
        finally:
            os.close(writing)
        begun = time.monotonic()
        reader = _Reader(scratch / "results", report, progress)
        timed_out = False
        try:
            while process.poll() is None:
                reader.read()
                if reader.done:
                    break
                if time.monotonic() - begun > job.timeout or _resident(process.pid) > job.memory > 0:
                    timed_out = time.monotonic() - begun > job.timeout
                    break
                time.sleep(0.05)
        finally:
            status = end(process)
            drain.join(timeout=2)
        reader.read()
        if reader.done:
            return None
        seconds = time.monotonic() - reader.since
        return _End(reader.cell, _reason(status, job, timed_out, tail), seconds, reader.built)


def _start(scratch: Path, output: int, *, fork: bool) -> Forked | subprocess.Popen[bytes]:
    """A process group of its own, with temporary files, caches and working directory in the scratch folder. What runs
    on a GPU is a new process: that CUDA bears the fork was not tried."""
    work = str(scratch / "work")
    variables = {
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR", "NUMBA_CACHE_DIR"), work),
        "TORCH_EXTENSIONS_DIR": str(scratch / "extensions"),
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "HF_HUB_OFFLINE": "1",
    }
    return start(_RUN, str(scratch / "job.json"), scratch / "work", variables, output, fork=fork)


def _drain(output: int, tail: deque[bytes]) -> None:
    """Read whatever the code prints, and keep the end of it."""
    with suppress(OSError, ValueError), open(output, "rb", buffering=0) as read:
        while chunk := read.read(65536):
            tail.append(chunk[-2048:])


def _resident(pid: int) -> int:
    """Bytes of memory in use by the process; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _reason(status: int, job: Job, timed_out: bool, tail: deque[bytes]) -> str:
    if timed_out:
        return f"still running after {job.timeout:.0f} s (--timeout)"
    if status < 0:
        names = {number.value: number.name for number in signal.Signals}
        name = names.get(-status, str(-status))
        if name == "SIGKILL":
            return f"ended because it used more than {job.memory / 2**30:g} GiB of memory (--memory), or killed"
        return f"the process died of signal {name}"
    last = [line for line in b"".join(tail).decode(errors="replace").splitlines() if line.strip()]
    said = f": {last[-1].strip()[:200]}" if last and status else ""
    return f"the process ended with status {status}{said}"


class _Reader:
    """Follows the results file of a child, line by line."""

    def __init__(self, path: Path, report: Report, progress: Callable[[str], None] | None) -> None:
        self.path = path
        self.report = report
        self.progress = progress
        self.position = 0
        self.done = False
        self.cell: Cell | None = None
        self.built = ""
        self.since = time.monotonic()

    def read(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self.position)
            data = file.read()
        complete = data.rfind(b"\n") + 1
        self.position += complete
        for line in data[:complete].splitlines():
            self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "done":
            self.done = True
            self.report.asked_capability = event["asked_capability"]
        elif kind == "cannot-build":
            self.report.broken, self.report.advice = event["reason"], event["advice"]
        elif kind == "built":
            if not event["variant"]:
                self.report.target, self.report.how = event["target"], event["how"]
                self.report.modes, self.report.built = tuple(event["modes"]), event["built"]
            self.report.torch, self.built = event["torch"], event["built"]
        elif kind == "start":
            variant, scenario, mode = event["cell"]
            self.cell = (variant, scenario, mode)
            self.since = time.monotonic()
            if self.progress is not None:
                self.progress(" ".join(filter(None, (scenario, mode, variant))))
        elif kind == "cell":
            self.report.outcomes.append(Outcome.from_json(event["outcome"]))
            self.cell = None
