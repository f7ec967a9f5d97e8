"""An editor for tests: a real language client that starts ``amplint server`` and speaks to it over stdio."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from conftest import ROOT
from lsprotocol import types
from pygls.lsp.client import LanguageClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

_T = TypeVar("_T")

PATIENCE = 60
"""Seconds after which an answer is taken not to come."""
QUIET = 0.6
"""Seconds without a message after which none is taken to come; more than the server waits for a pause."""
ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def driven(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is a coroutine, as pytest wants it; with the fixture ``editor`` in its loop."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        task = asyncio.wait_for(test(*arguments, **named), 3 * PATIENCE)
        editor = named.get("editor")
        if editor is None:
            asyncio.run(task)
        else:
            editor.loop.run_until_complete(task)

    return run


class Editor:
    """Holds texts, and what the server said of them. Use with ``async with``.

    ``encodings`` are those that it can count in, in its order of preference; none for what the protocol takes for
    granted. ``folder`` is the workspace, None for none.
    """

    def __init__(
        self,
        folder: Path | None,
        *arguments: str,
        settings: object = None,
        encodings: Sequence[str] = (),
        versioned: bool = False,
        watches: bool = False,
        answer: str | None = None,
    ) -> None:
        self._arguments = arguments
        self._parameters = types.InitializeParams(
            types.ClientCapabilities(
                general=types.GeneralClientCapabilities(position_encodings=list(encodings)) if encodings else None,
                workspace=types.WorkspaceClientCapabilities(
                    workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=versioned),
                    inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
                    did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                        dynamic_registration=watches
                    ),
                ),
            ),
            root_uri=folder.as_uri() if folder is not None else None,
            initialization_options=settings,
        )
        self.encoding = "utf-16"
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.logged: list[str] = []
        self.shown: list[str] = []
        self.asked: list[types.ShowMessageRequestParams] = []
        self.refreshed = 0
        self.registered: list[types.Registration] = []
        self._answer = answer
        self.loop: asyncio.AbstractEventLoop | None = None
        self.client = LanguageClient("tests", "1")
        on = self.client.feature
        on(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.published.put_nowait(params))
        on(types.WINDOW_LOG_MESSAGE)(lambda params: self.logged.append(params.message))
        on(types.WINDOW_SHOW_MESSAGE)(lambda params: self.shown.append(params.message))
        on(types.WINDOW_SHOW_MESSAGE_REQUEST)(lambda params: self._reply(params))
        on(types.WORKSPACE_INLAY_HINT_REFRESH)(lambda params: self._count_refresh())
        on(types.CLIENT_REGISTER_CAPABILITY)(lambda params: self.registered.extend(params.registrations))

    def _reply(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        self.asked.append(params)
        return next((item for item in params.actions or () if item.title == self._answer), None)

    def _count_refresh(self) -> None:
        self.refreshed += 1

    async def __aenter__(self) -> Editor:
        path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        await self.client.start_io(sys.executable, "-m", "amplint", "server", *self._arguments, env=environment)
        result = await self.within(self.client.initialize_async(self._parameters))
        self.encoding = result.capabilities.position_encoding or "utf-16"
        self.client.initialized(types.InitializedParams())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        process = self.client._server
        assert process is not None
        try:
            if kind is None:
                await self.within(self.client.shutdown_async(None))
                self.client.exit(None)
                await self.within(self.client.stop())
                assert process.returncode == 0
        finally:
            if process.returncode is None:
                process.kill()

    @staticmethod
    async def within(answer: Awaitable[_T]) -> _T:
        return await asyncio.wait_for(answer, PATIENCE)

    # ---- documents --------------------------------------------------------------------------------------------------

    def open(self, document: Path | str, text: str | None = None, language: str = "python") -> str:
        """Open a file, or a document by its URI, with the text on disk or another one; gives its URI."""
        uri = document if isinstance(document, str) else document.as_uri()
        if text is None:
            assert not isinstance(document, str)
            text = document.read_text(encoding="utf-8")
        self.texts[uri], self.versions[uri] = text, 1
        item = types.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, text: str) -> None:
        """Replace the text."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def save(self, uri: str, path: Path) -> None:
        path.write_text(self.texts[uri], encoding="utf-8")
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def configure(self, settings: object) -> None:
        """Tell of changed settings."""
        self.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))

    async def close_all(self) -> None:
        """Close every document, and forget what was said."""
        for uri in self.texts:
            self.close(uri)
        await self.command("autocast-bf16")
        self.texts, self.versions, self.refreshed = {}, {}, 0
        for said in (self.logged, self.shown, self.asked):
            said.clear()
        while not self.published.empty():
            self.published.get_nowait()

    async def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """What the server says next of a document, which must be about the text that the editor holds."""
        while True:
            params = await self.within(self.published.get())
            if params.uri == uri and params.version is not None:
                assert params.version == self.versions[uri]
                return list(params.diagnostics)

    async def codes(self, uri: str) -> list[str]:
        return [str(diagnostic.code) for diagnostic in await self.diagnostics(uri)]

    async def silence(self) -> None:
        """Nothing more is published."""
        await asyncio.sleep(QUIET)
        assert self.published.empty()

    # ---- requests ---------------------------------------------------------------------------------------------------

    async def actions(self, uri: str, at: types.Range, *only: str, automatic: bool = False) -> list[types.CodeAction]:
        kind = types.CodeActionTriggerKind.Automatic if automatic else types.CodeActionTriggerKind.Invoked
        context = types.CodeActionContext([], list(only) or None, kind)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), at, context)
        found = await self.within(self.client.text_document_code_action_async(params))
        assert all(isinstance(action, types.CodeAction) for action in found or ())
        return list(found or ())  # type: ignore[arg-type]

    async def hover(self, uri: str, text: str, skip: int = 0) -> tuple[str, str] | None:
        """What is shown at a piece of the text, ``skip`` characters behind its beginning, and the text it is about."""
        offset = self.texts[uri].index(text) + skip
        params = types.HoverParams(types.TextDocumentIdentifier(uri), self.position(uri, offset))
        found = await self.within(self.client.text_document_hover_async(params))
        if found is None:
            return None
        assert isinstance(found.contents, types.MarkupContent)
        assert found.contents.kind is types.MarkupKind.Markdown
        assert found.range is not None
        return found.contents.value, self.segment(uri, found.range)

    async def hints(self, uri: str, lines: tuple[int, int] = (0, 10_000)) -> dict[str, str]:
        """What is shown behind which line so far."""
        span = types.Range(types.Position(lines[0], 0), types.Position(lines[1], 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), span)
        found = await self.within(self.client.text_document_inlay_hint_async(params))
        shown = {}
        for hint in found or ():
            end = self.offset(uri, hint.position)
            start = self.texts[uri].rfind("\n", 0, end) + 1
            shown[self.texts[uri][start:end].strip()] = str(hint.label)
        return shown

    async def command(self, *arguments: object) -> object:
        params = types.ExecuteCommandParams("amplint.scenario", list(arguments) or None)
        return await self.within(self.client.workspace_execute_command_async(params))

    # ---- places -----------------------------------------------------------------------------------------------------

    def position(self, uri: str, offset: int) -> types.Position:
        before = self.texts[uri][:offset]
        start = before.rfind("\n") + 1
        codec, width = ENCODINGS[self.encoding]
        return types.Position(before.count("\n"), len(before[start:].encode(codec)) // width)

    def offset(self, uri: str, position: types.Position) -> int:
        lines = self.texts[uri].splitlines(keepends=True)
        assert position.line <= len(lines)
        if position.line == len(lines):
            return len(self.texts[uri])
        codec, width = ENCODINGS[self.encoding]
        start = sum(map(len, lines[: position.line]))
        return start + len(lines[position.line].encode(codec)[: position.character * width].decode(codec))

    def segment(self, uri: str, span: types.Range) -> str:
        return self.texts[uri][self.offset(uri, span.start) : self.offset(uri, span.end)]

    def applied(self, uri: str, action: types.CodeAction) -> str:
        """The text after an action's edit, which is of this document and of the version that the editor holds."""
        assert action.edit is not None
        if action.edit.changes is not None:
            assert list(action.edit.changes) == [uri]
            edits = list(action.edit.changes[uri])
        else:
            assert action.edit.document_changes is not None
            (change,) = action.edit.document_changes
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document == types.OptionalVersionedTextDocumentIdentifier(
                uri=uri, version=self.versions[uri]
            )
            edits = list(change.edits)  # type: ignore[arg-type]
        text = self.texts[uri]
        ranges = [(self.offset(uri, e.range.start), self.offset(uri, e.range.end), e.new_text) for e in edits]
        for start, end, new in sorted(ranges, key=lambda edit: edit[0], reverse=True):
            text = text[:start] + new + text[end:]
        return text
