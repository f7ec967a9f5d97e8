"""What ``amplint verify`` does with a target, in a fork of a process that has torch already."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules
from amplint.source import Source
from amplint.verify.job import Job, Outcome
from amplint.verify.targets import outline, target_named
from amplint.verify.verification import Settings, job_of

DEVICE = "cuda"
CHILD = ("amplint.verify.child", "amplint.verify.build", "amplint.verify.cell", "amplint.verify.loading")


@dataclass(frozen=True)
class Ran:
    """The cells that ended, how the target was built, and whether the run came to its end."""

    outcomes: tuple[Outcome, ...]
    how: str | None
    whole: bool


def prepare() -> None:
    """Import what every run needs. One thread: OpenMP's pool does not survive a fork."""
    os.environ.update(TORCHDYNAMO_DISABLE="1", PYTHONDONTWRITEBYTECODE="1")
    for name in CHILD:
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)


def job_for(path: Path, data: bytes, name: str, scenarios: tuple[str, ...], root: Path) -> Job | None:
    """The job of ``amplint verify PATH::NAME`` at default settings, with ``data`` in the place of the file's bytes.

    None where the file has no class of that name.
    """
    options = judging_options(Config(), load_rules(), scenario=scenarios)
    source = Source(path, data)
    shape = outline(source)
    target = target_named(path, shape, name, check_file(source, options).findings)
    if target is None or name not in shape.classes:
        return None
    settings = Settings(replace(options, scenarios=options.judged), "cpu", root)
    return replace(job_of(target, shape, settings, DEVICE), overlay={str(path): source.text})


def run(job: Job) -> Ran:
    """Run a job within its time."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(prefix="amplint-mutants-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        results = scratch / "results"
        results.touch()
        (scratch / "job.json").write_text(json.dumps(replace(job, results=str(results)).to_json()))
        process = context.Process(target=_child, args=(scratch,))
        process.start()
        process.join(job.timeout)
        with suppress(OSError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.kill()
        process.join()
        lines = [line for line in results.read_text().splitlines(keepends=True) if line.endswith("\n")]
    events = [json.loads(line) for line in lines]
    return Ran(
        tuple(Outcome.from_json(event["outcome"]) for event in events if event["event"] == "cell"),
        next((event["how"] for event in events if event["event"] == "built"), None),
        any(event["event"] == "done" for event in events),
    )


def _child(scratch: Path) -> None:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.chdir(scratch)
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    sys.argv[1:] = [str(scratch / "job.json")]
    sys.modules[CHILD[0]].main()
