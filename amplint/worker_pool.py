"""Work spread over processes of our own, which end with this one, and whenever it is stopped."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import connection, parent_process
from typing import TYPE_CHECKING, TypeVar

from amplint import contents
from amplint.garbage import collect_seldom
from amplint.own_process import OwnProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
R = TypeVar("R")


def pooled(
    function: Callable[[T], R], items: Sequence[T], processes: int, held: Mapping[Path, bytes]
) -> Generator[tuple[T, R | None], None, None]:
    """Each item, as they are ready, with the function's result; None where a process died of it.

    What a broken pool had not yet done is done again, in a process of its own. Files are read as if they held what
    ``held`` says.
    """
    made = partial(_made, held)
    pool, rescue = made(processes), OwnProcess(partial(made, 1))
    finished = False
    try:
        pending = {pool.submit(function, item): item for item in items}
        lost = []
        for future in as_completed(pending):
            try:
                yield pending[future], future.result()
            except BrokenProcessPool:
                lost.append(pending[future])
        for item in lost:
            yield item, rescue.run(function, item)
        finished = True
    finally:
        rescue.close()
        if not finished:
            for process in multiprocessing.active_children():
                process.terminate()
            _hang_up(pool)
        pool.shutdown(wait=True, cancel_futures=True)  # else Python ends, and wakes the pool's thread while that closes


def _made(held: Mapping[Path, bytes], processes: int) -> ProcessPoolExecutor:
    spawning = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, spawning, initializer=_prepare, initargs=(dict(held),))


def _hang_up(pool: ProcessPoolExecutor) -> None:
    """Close this process's end of the pipe that results come through, which only the pool's processes write to.

    Where one is terminated while it sends a result, the pool's thread waits for the rest of that until no end is open,
    and Python waits for the thread before it ends.
    """
    results = getattr(pool, "_result_queue", None)
    if results is not None:
        results._writer.close()


def _prepare(held: Mapping[Path, bytes]) -> None:
    """Let a process of the pool end without a traceback on Ctrl-C, and whenever its parent has gone."""
    collect_seldom()
    contents.stand(held)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
