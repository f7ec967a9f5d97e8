"""Bounds on a search: time, tries, and the size of what is constructed."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_ELEMENTS = 50_000_000
"""Elements that a constructor may allocate in all: 200 MB of float32."""
LARGEST = 150_000_000
"""Elements of what nothing makes smaller: the largest image classifiers of their time."""

_FACTORIES = {
    *("empty", "zeros", "ones", "full", "randn", "rand", "randint", "arange", "linspace", "eye", "empty_strided")
}
_COPIES = {"repeat", "clone", "tile", "tril", "triu", "outer", "cat", "stack"}


class OutOfTime(BaseException):
    """A try took too long. Not an Exception, so that the code under trial does not swallow it."""


class TooLarge(BaseException):
    """A constructor allocates more than MOST_ELEMENTS."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a search ends: instants of this thread's processor time and of ``time.monotonic``, whichever comes first.

    The processor time is what decides, so that a busy machine builds what an idle one does.
    """

    processor: float
    clock: float

    @classmethod
    def after(cls, seconds: float, *, slack: float = 2.0) -> Deadline:
        """``seconds`` of work from now on, and at most ``slack`` times as many in all."""
        return cls(time.thread_time() + seconds, time.monotonic() + slack * seconds)

    def left(self) -> float:
        """Seconds until then; not positive where it has passed."""
        return min(self.processor - time.thread_time(), self.clock - time.monotonic())

    def sooner(self, seconds: float) -> Deadline:
        """The end of ``seconds`` of work, but not later than this one."""
        other = Deadline.after(seconds)
        return Deadline(min(self.processor, other.processor), min(self.clock, other.clock))


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the block after ``seconds``, where the platform has interval timers.

    Elsewhere, and outside the main thread, the block is only refused when ``seconds`` is not positive. A timer that was
    running before is set again with what is left of it.
    """
    if seconds <= 0:
        raise OutOfTime
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    over = False

    def stop(*_: object) -> None:
        if not over:
            raise OutOfTime

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, stop)
    outer, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)  # again, where the first was lost
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - began), 1e-3), interval)


class SizeGuard(TorchFunctionMode):
    """Raises TooLarge before tensors beyond ``most`` elements in all are made by factory functions."""

    def __init__(self, most: int = MOST_ELEMENTS) -> None:
        super().__init__()
        self.most = most
        self.elements = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _FACTORIES:
            self._count(_planned(func, args, kwargs))
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        if name in _COPIES and isinstance(result, torch.Tensor):
            self._count(result.numel())
        return result

    def _count(self, elements: int) -> None:
        self.elements += elements
        if self.elements > self.most:
            raise TooLarge


def _planned(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Elements that the factory call would allocate, learnt on the meta device."""
    options = {name: value for name, value in kwargs.items() if name not in ("generator", "out", "pin_memory")}
    try:
        return math.prod(func(*args, **{**options, "device": "meta"}).shape)
    except Exception:
        return 0
