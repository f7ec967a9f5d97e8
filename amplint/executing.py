"""Work spread over an executor of the caller's: threads, processes, or the workers of a cluster."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from amplint import contents
from amplint.own_process import OwnProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor, Future

T = TypeVar("T")
R = TypeVar("R")


MAX_TOGETHER = 24
"""Items that are given to an executor as one piece of work."""
PIECES = 64
"""Pieces of work from which on items are put together: a cluster is slow with thousands, or loses its connection."""


def spread(
    executor: Executor, function: Callable[[T], R], items: Sequence[T]
) -> Iterator[tuple[T, R | Exception | None]]:
    """Each item, in the order given, with the function's result.

    Where one cannot be had it is the executor's error, and None where a process died of the item: what a broken pool
    had not yet done is done again, in a process of its own. What is not yet done when the iteration ends is cancelled.
    """
    work = partial(_in_turn, function, uuid.uuid4().hex)
    size = max(1, min(MAX_TOGETHER, len(items) // PIECES))
    together = [items[start : start + size] for start in range(0, len(items), size)]
    futures = [(piece, _submitted(executor, work, piece)) for piece in together]
    futures.reverse()
    rescue = OwnProcess(partial(ProcessPoolExecutor, 1))
    try:
        while futures:
            piece, future = futures.pop()
            try:
                if future is None:
                    raise BrokenExecutor
                yield from zip(piece, future.result(), strict=True)
            except BrokenExecutor:
                for item in piece:
                    done = rescue.run(work, [item])
                    yield item, done[0] if done is not None else None
            except Exception as error:
                if len(piece) == 1:
                    yield piece[0], error
                else:
                    futures += [([item], _submitted(executor, work, [item])) for item in reversed(piece)]
    finally:
        rescue.close()
        for _, future in futures:
            if future is not None:
                future.cancel()


def _submitted(
    executor: Executor, work: Callable[[Sequence[T]], list[R]], piece: Sequence[T]
) -> Future[list[R]] | None:
    """None where the executor is broken."""
    try:
        return executor.submit(work, piece)
    except BrokenExecutor:
        return None


class _Turns:
    """What the threads of one process share: one works at a time, since what is known of other files is shared too."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.run = ""


_TURNS = _Turns()


def _in_turn(function: Callable[[T], R], run: str, items: Sequence[T]) -> list[R]:
    """The function's results; other files are looked at anew when the worker serves another run."""
    with _TURNS.lock:
        if _TURNS.run != run:
            _TURNS.run = run
            contents.look_again()
        return [function(item) for item in items]
