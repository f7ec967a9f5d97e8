"""What is shown on stderr while a run goes on, on a terminal only."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

WHOLE_RUN = 1e6
"""Seconds of which the estimate takes the mean: of the whole run, since one file may be slow."""
DELAY = 1.0
"""Seconds before the bar appears."""


@contextmanager
def counting(total: int, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A bar for runs that take longer than a moment; gives what to call with the size of each file that is done.

    ``total`` is the size of all: large files come first, and an estimate by their number would be too long at first.
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda size: None
        return
    done, start = 0, time.monotonic()
    bar: Progress | None = None
    with ExitStack() as stack:

        def advance(size: int) -> None:
            nonlocal done, bar
            done += size
            if bar is None and time.monotonic() - start >= DELAY:
                from rich.console import Console
                from rich.progress import Progress

                bar = stack.enter_context(
                    Progress(console=Console(stderr=True), transient=True, speed_estimate_period=WHOLE_RUN)
                )
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
