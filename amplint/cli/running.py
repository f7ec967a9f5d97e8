"""What the commands share that run the code they judge: the hardware, one target after another, how to repeat it."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from amplint.config import UsageError
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from amplint.cli.options import JudgingArguments
    from amplint.verify.targets import Outline, Target
    from amplint.verify.verification import Settings, Verified


def require_torch(who: str) -> None:
    """Raise UsageError where there is no torch to run code with; ``who`` needs it."""
    if importlib.util.find_spec("torch") is None:
        raise UsageError(f'{who} runs code and needs torch: pip install "amplint[verify]"')


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Being terminated ends the child process and removes temporary files, as an interrupt does."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:
            signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler == signal.SIG_DFL:
                signal.signal(number, handler)


def _leave(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


@dataclass(frozen=True)
class Work:
    """A target, the file that it stands in, and how to verify it."""

    target: Target
    outline: Outline
    settings: Settings


def verify_all(jobs: list[Work]) -> list[Verified]:
    """Run each, once where a file's example speaks for a class; a line on the terminal says what runs now."""
    from amplint.report.progress import telling
    from amplint.verify.verification import verify_target

    done = []
    spoken_for: set[tuple[Path, str | None]] = set()
    with telling() as show:
        for number, job in enumerate(jobs, 1):
            if (job.target.path, job.target.name) in spoken_for:
                continue
            name = job.target.name or job.target.path.stem
            label = f"Running {name} ({number} of {len(jobs)})"
            show(label)
            verified = verify_target(job.target, job.outline, job.settings, _progress(show, label))
            if job.target.name is None:  # the file's example
                spoken_for.add((job.target.path, verified.built))
            done.append(verified)
    return done


def _progress(show: Callable[[str], None], label: str) -> Callable[[str], None]:
    return lambda cell: show(f"{label}: {cell}")


def hardware(run_on: str, device: str) -> str:
    """``cuda`` or ``cpu``. Raises UsageError for what is not there or does not go together."""
    if run_on == "cpu" or (run_on == "auto" and device != "cuda"):
        return "cpu"
    if device != "cuda":
        raise UsageError(f"--run-on cuda runs CUDA's own policy; it does not go with --device {device}")
    from amplint.verify.hardware import has_cuda

    if has_cuda():
        return "cuda"
    if run_on == "cuda":
        raise UsageError("--run-on cuda: torch sees no CUDA GPU here; --run-on cpu puts CUDA's policy over the CPU")
    return "cpu"


def repeated(arguments: JudgingArguments, factory: str | None = None) -> tuple[str, ...]:
    """The options that decide what comes out, apart from those that a row itself knows."""
    switches = {
        "--pedantic": arguments.pedantic,
        "--isolated": arguments.isolated,
        "--no-plugins": arguments.no_plugins,
    }
    values = [
        *(("--select", rules) for rules in arguments.select),
        *(("--ignore", rules) for rules in arguments.ignore),
        ("--torch-version", arguments.torch_version),
        ("--min-certainty", arguments.min_certainty),
        ("--min-severity", arguments.min_severity),
        ("--config", arguments.config and os.path.abspath(arguments.config)),
        ("--factory", factory),
    ]
    given = [part for option, value in values if value is not None for part in (option, value)]
    return (*given, *(option for option, on in switches.items() if on))
