"""One thread that does the work, so that the protocol is never kept waiting: one job at a time, the newest first."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Worker:
    """Runs functions in a thread of its own, which ends with the process."""

    def __init__(self) -> None:
        self._jobs: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._waiting = threading.Condition()
        threading.Thread(target=self._work, name="amplint worker", daemon=True).start()

    async def run(self, function: Callable[[], _T]) -> _T:
        """What the function returns or raises. Cancelled before its turn comes, it is not run."""
        future: Future[_T] = Future()
        with self._waiting:
            self._jobs.append((future, function))
            self._waiting.notify()
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            with self._waiting:
                while not self._jobs:
                    self._waiting.wait()
                future, function = self._jobs.pop()
            if future.set_running_or_notify_cancel():
                _settle(future, function)


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        result = function()
    except Exception as error:
        future.set_exception(error)
    except BaseException as error:  # a rule that calls sys.exit() ends itself, not the server
        future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
    else:
        future.set_result(result)
