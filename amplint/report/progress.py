"""What is shown on stderr while a run goes on, on a terminal only."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

DELAY = 1.0
"""Seconds before the bar appears."""


@contextmanager
def counting(total: int, *, shown: bool = True) -> Iterator[Callable[[], None]]:
    """A bar for runs that take longer than a moment; gives what to call whenever one more file is done."""
    if not (shown and sys.stderr.isatty()):
        yield lambda: None
        return
    done, start = 0, time.monotonic()
    bar: Progress | None = None
    with ExitStack() as stack:

        def advance() -> None:
            nonlocal done, bar
            done += 1
            if bar is None and time.monotonic() - start >= DELAY:
                from rich.console import Console
                from rich.progress import Progress

                bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
                bar.add_task("Checking", total=total)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)

        yield advance


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """One line that says what runs now; gives what to say it with."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
