"""Forked children: each answers over a pipe, within a time, and takes nothing else down."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from amplint.verify.limits import limit_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

MEMORY = 3 << 30


class Child:
    """The parent's end: ``ask`` and ``answer`` in turn. ``answer`` is None where the child ended or was too slow."""

    def __init__(self, work: Callable[[Connection], None]) -> None:
        context = multiprocessing.get_context("fork")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_guarded, args=(work, there))
        self._process.start()
        there.close()

    def ask(self, question: Any) -> None:
        """Send something; what a child that has ended does not hear is lost."""
        try:
            self._here.send(question)
        except (BrokenPipeError, OSError):
            return

    def answer(self, seconds: float) -> Any:
        """The next answer."""
        try:
            return self._here.recv() if self._here.poll(seconds) else None
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """Kill the child, whatever it does."""
        self._process.kill()
        self._process.join()
        self._here.close()


@contextmanager
def child(work: Callable[[Connection], None]) -> Iterator[Child]:
    """A child that runs ``work`` with its end of the pipe, ended on exit."""
    made = Child(work)
    try:
        yield made
    finally:
        made.end()


def _guarded(work: Callable[[Connection], None], pipe: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    limit_memory(MEMORY)
    work(pipe)
