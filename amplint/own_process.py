"""A process for work that may end it: what dies takes nothing else with it."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

T = TypeVar("T")
R = TypeVar("R")


class OwnProcess:
    """One process after another: a new one where the work before ended it. ``pool`` makes one."""

    def __init__(self, pool: Callable[[], Executor]) -> None:
        self._new = pool
        self._pool: Executor | None = None

    def run(self, function: Callable[[T], R], item: T) -> R | None:
        """The function's result; None where the process died of it."""
        self._pool = self._pool or self._new()
        try:
            return self._pool.submit(function, item).result()
        except BrokenExecutor:
            self.close()
            return None

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
