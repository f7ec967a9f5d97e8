"""The open documents, and when each is checked: what is older than the text in the editor is never shown."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from amplint.frozen import dataclass
from amplint.server.analyser import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from amplint.server.analyser import Analyser, Checked, Inferred
    from amplint.server.buffers import Buffer
    from amplint.server.worker import Worker

_T = TypeVar("_T")

PAUSE = 0.25
"""Seconds without a change after which a text is checked."""


@dataclass(slots=True)
class _Document:
    """One open document and what is being made of its text, each part once."""

    buffer: Buffer
    saved: bool = True
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the check is not to wait for a pause."""
    checking: asyncio.Task[Checked | None] | None = None
    inferring: asyncio.Task[Inferred | None] | None = None
    fixing: asyncio.Task[bytes | None] | None = None

    def forget(self) -> None:
        """Drop what was made of an earlier text, or is still being made."""
        for task in (self.checking, self.inferring, self.fixing):
            if task is not None:
                task.cancel()
        self.wanted = asyncio.Event()
        self.checking = self.inferring = self.fixing = None


class Documents:
    """Lives in the event loop. ``publish`` is called with each check that is still about the text in the editor,
    ``report`` with a line for each internal error."""

    def __init__(
        self, worker: Worker, analyser: Analyser, publish: Callable[[Checked], None], report: Callable[[str], None]
    ) -> None:
        self._worker = worker
        self._analyser = analyser
        self._publish = publish
        self._report = report
        self._open: dict[str, _Document] = {}

    def __iter__(self) -> Iterator[Buffer]:
        return (document.buffer for document in self._open.values())

    def __contains__(self, uri: str) -> bool:
        return uri in self._open

    def open(self, buffer: Buffer) -> None:
        """Check a document that was just opened."""
        self._open[buffer.uri] = _Document(buffer)
        self._check(buffer.uri, 0)

    def change(self, buffer: Buffer) -> None:
        """Check a new text when no other has come for a while."""
        document = self._open[buffer.uri]
        document.buffer, document.saved = buffer, False
        self._tell_world()
        self._check(buffer.uri, PAUSE)

    def save(self, uri: str) -> None:
        """Check a document that was saved, and the others, which may rest on it."""
        self._open[uri].saved = True
        self.look_again(uri)

    def close(self, uri: str) -> None:
        """Forget a document; what is on disk counts again."""
        self._open.pop(uri).forget()
        self._tell_world()

    def look_again(self, first: str | None = None) -> None:
        """Files on disk have changed: check everything, one document at once."""
        self._tell_world(changes=1)
        for uri in self._open:
            self._check(uri, 0 if uri == first else PAUSE)

    def last(self, uri: str) -> Checked | None:
        """The check of the text in the editor, where it is done."""
        document = self._open.get(uri)
        task = document.checking if document is not None else None
        return task.result() if task is not None and task.done() else None

    async def checked(self, uri: str) -> Checked | None:
        """The check of the text in the editor, without waiting for a pause; None where that text is gone by then."""
        document = self._open.get(uri)
        if document is None or document.checking is None:
            return None
        document.wanted.set()
        return await _of(document.checking)

    async def dtypes(self, uri: str) -> Inferred | None:
        """The dtypes of the text in the editor; None where they cannot be inferred or that text is gone by then."""
        document = self._open.get(uri)
        if document is None:
            return None
        if document.inferring is None:
            buffer = document.buffer
            document.inferring = asyncio.create_task(self._made(buffer, self._analyser.dtypes))
        return await _of(document.inferring)

    async def fixed(self, uri: str) -> bytes | None:
        """The text in the editor after all safe fixes; None where these change nothing or that text is gone by then."""
        document = self._open.get(uri)
        if document is None:
            return None
        if document.fixing is None:
            buffer = document.buffer
            document.fixing = asyncio.create_task(self._made(buffer, self._analyser.fixed))
        return await _of(document.fixing)

    def _check(self, uri: str, pause: float) -> None:
        document = self._open[uri]
        document.forget()
        document.checking = asyncio.create_task(self._checking(document.buffer, document.wanted, pause))

    async def _checking(self, buffer: Buffer, wanted: asyncio.Event, pause: float) -> Checked | None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(wanted.wait(), pause)
        checked = await self._made(buffer, self._analyser.check)
        document = self._open.get(buffer.uri)
        if checked is None or document is None or document.checking is not asyncio.current_task():
            return None
        self._publish(checked)
        return checked

    async def _made(self, buffer: Buffer, make: Callable[[Buffer], _T]) -> _T | None:
        """What the worker makes of a buffer; None, and a line is reported, where amplint itself fails."""
        try:
            return await self._worker.run(lambda: make(buffer))
        except Exception as error:
            self._report(f"internal error in amplint on {buffer.path}: {type(error).__name__}: {error}")
            return None

    def _tell_world(self, *, changes: int = 0) -> None:
        unsaved = {d.buffer.path: d.buffer.source.data for d in self._open.values() if not d.saved}
        self._analyser.world = World(unsaved, self._analyser.world.changes + changes)


async def _of(task: Awaitable[_T]) -> _T | None:
    """What a shared task gives, which goes on if this request is cancelled; None if the task was."""
    future = asyncio.ensure_future(task)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if future.cancelled():
            return None
        raise
