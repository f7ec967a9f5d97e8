"""A progress bar on stderr, on a terminal only, for runs that take longer than a moment."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID
    from rich.status import Status

DELAY = 1.0
"""Seconds before the bar appears."""


class ProgressBar:
    """Counts files. As a context manager it takes the bar away at the end."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._start = time.monotonic()
        self._wanted = sys.stderr.isatty()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One more file is done."""
        self._done += 1
        if not self._wanted:
            return
        if self._bar is None and time.monotonic() - self._start >= DELAY:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("Checking", total=self._total)
            self._bar.start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)


class Ticker:
    """One line on stderr, on a terminal only, that says what runs now."""

    def __init__(self) -> None:
        self._status: Status | None = None

    def __enter__(self) -> Ticker:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        """Say what runs now."""
        if self._status is not None:
            self._status.update(text)
