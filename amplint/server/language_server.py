"""The language server: which request of the protocol is answered by what."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from amplint import __version__
from amplint.config import UsageError
from amplint.finding import Applicability
from amplint.infer.lattice.scenarios import SCENARIOS, Scenario
from amplint.server.actions import FIX_ALL, Actions, is_asked_for
from amplint.server.analyser import Analyser
from amplint.server.buffers import buffer_of, is_python, path_of
from amplint.server.diagnostics import diagnostic
from amplint.server.documents import Documents
from amplint.server.hints import hints
from amplint.server.hover import hover
from amplint.server.positions import Places
from amplint.server.settings import scenario_in, scenario_named
from amplint.server.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.finding import Finding
    from amplint.rule_base import Announced
    from amplint.server.actions import Shown
    from amplint.server.analyser import Checked, OptionsOf
    from amplint.server.buffers import Buffer

CHOOSE_SCENARIO = "amplint.scenario"
USUAL_SCENARIO = scenario_named("autocast-bf16")
"""Whose dtypes are shown where neither the editor nor the file's configuration names a scenario."""
WATCHED = (
    "**/*.py",
    "**/{amplint,pyproject}.toml",
    "**/setup.cfg",
    "**/requirements*.{txt,in}",
    "**/environment*.{yml,yaml}",
)
"""What decides findings besides the text that is open."""


def serve(new_options: Callable[[], OptionsOf], reader: BinaryIO, writer: BinaryIO) -> None:
    """Answer one client until it leaves. Raises UsageError where ``new_options`` does at the start."""
    server = LanguageServer("amplint", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
    _Session(server, Analyser(new_options))
    server.start_io(reader, writer)


class _Session:
    """One client's session. Its handlers run in the event loop, and leave all work to the worker."""

    def __init__(self, server: LanguageServer, analyser: Analyser) -> None:
        self._server = server
        self._documents = Documents(Worker(), analyser, self._publish, self._log)
        self._scenario: Scenario | None = None
        self._told: dict[str, tuple[str, ...]] = {}
        """For each document, what was said of failures, so that it is not said again at each keystroke."""
        kinds = [types.CodeActionKind.QuickFix, FIX_ALL]
        self._on(types.INITIALIZE, self._initialize)
        self._on(types.INITIALIZED, self._initialized)
        self._on(types.TEXT_DOCUMENT_DID_OPEN, self._did_open)
        self._on(types.TEXT_DOCUMENT_DID_CHANGE, self._did_change)
        self._on(types.TEXT_DOCUMENT_DID_SAVE, self._did_save)
        self._on(types.TEXT_DOCUMENT_DID_CLOSE, self._did_close)
        self._on(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, self._did_change_files)
        self._on(types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._did_change_settings)
        self._on(types.TEXT_DOCUMENT_CODE_ACTION, self._code_actions, types.CodeActionOptions(code_action_kinds=kinds))
        self._on(types.TEXT_DOCUMENT_HOVER, self._hover)
        self._on(types.TEXT_DOCUMENT_INLAY_HINT, self._inlay_hints)
        server.command(CHOOSE_SCENARIO)(partial(self._choose_scenario))

    def _on(self, method: str, handler: Callable[[Any], Any], options: object = None) -> None:
        """Answer a method of the protocol; pygls marks what it is given, which a bound method does not allow."""
        self._server.feature(method, options)(partial(handler))

    # ---- the session ----------------------------------------------------------------------------------------------

    def _initialize(self, params: types.InitializeParams) -> None:
        self._take_settings(params.initialization_options, ours=True)

    def _initialized(self, params: types.InitializedParams) -> None:
        workspace = self._server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is None or not watching.dynamic_registration:
            return
        options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob) for glob in WATCHED])
        wanted = types.Registration("amplint-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        self._server.client_register_capability(types.RegistrationParams([wanted]))

    def _did_change_settings(self, params: types.DidChangeConfigurationParams) -> None:
        if self._take_settings(params.settings, ours=False):
            self._refresh_hints()

    def _take_settings(self, settings: object, *, ours: bool) -> bool:
        """Whether the settings chose a scenario."""
        try:
            scenario = scenario_in(settings, ours=ours)
        except UsageError as error:
            self._show(types.MessageType.Warning, f"amplint: {error}")
            return False
        self._scenario = scenario or self._scenario
        return scenario is not None

    async def _choose_scenario(self, *names: Any) -> str | None:
        """Show the dtypes of the scenario that is named, or that the user picks; gives its name."""
        name = names[0] if names else await self._ask_for_scenario()
        if name is None:
            return None
        try:
            self._scenario = scenario_named(name)
        except UsageError as error:
            raise JsonRpcInvalidParams(str(error)) from error
        self._refresh_hints()
        return self._scenario.name

    async def _ask_for_scenario(self) -> str | None:
        answer = await self._server.window_show_message_request_async(
            types.ShowMessageRequestParams(
                types.MessageType.Info,
                "amplint: show the dtypes of which scenario?",
                [types.MessageActionItem(scenario.name) for scenario in SCENARIOS],
            )
        )
        return answer.title if answer is not None else None

    def _refresh_hints(self) -> None:
        workspace = self._server.client_capabilities.workspace
        if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            self._server.workspace_inlay_hint_refresh(None)

    # ---- documents ------------------------------------------------------------------------------------------------

    def _did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        if is_python(document.uri, document.language_id):
            self._documents.open(buffer_of(document.uri, document.version, document.text, self._folder))

    def _did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        if uri in self._documents:
            text = self._server.workspace.get_text_document(uri).source
            self._documents.change(buffer_of(uri, version, text, self._folder))

    def _did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        if params.text_document.uri in self._documents:
            self._documents.save(params.text_document.uri)

    def _did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in self._documents:
            self._documents.close(uri)
            self._told.pop(uri, None)
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _did_change_files(self, params: types.DidChangeWatchedFilesParams) -> None:
        """Open documents tell of themselves."""
        if any(change.uri not in self._documents for change in params.changes):
            self._documents.look_again()

    @property
    def _folder(self) -> Path:
        """Where a document that was never saved counts as being."""
        root = self._server.workspace.root_uri
        return path_of(root, Path.cwd()) if root else Path.cwd()

    # ---- answers --------------------------------------------------------------------------------------------------

    def _publish(self, checked: Checked) -> None:
        """Show what was found; what failed on the way is told before it, so that a client that waits has both."""
        buffer, result = checked.buffer, checked.result
        told = self._told.get(buffer.uri, ())
        self._told[buffer.uri] = (*result.failures, *((checked.problem,) if checked.problem else ()))
        for line in sorted(set(result.failures) - set(told)):
            self._log(line)
        if checked.problem and checked.problem not in told:
            self._show(types.MessageType.Error, f"amplint: {checked.problem}")
        shown = [shown for _, shown in self._shown(checked)]
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(buffer.uri, shown, buffer.version)
        )

    async def _code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri, context = params.text_document.uri, params.context
        automatic = context.trigger_kind is types.CodeActionTriggerKind.Automatic and context.only is None
        checked = self._documents.last(uri) if automatic else await self._documents.checked(uri)
        if checked is None:
            return []
        positions = self._places(checked.buffer).of(checked.buffer.path)
        actions = Actions(checked.buffer, positions, versioned=self._takes_versions)
        offered: list[types.CodeAction] = []
        if is_asked_for(types.CodeActionKind.QuickFix.value, context.only):
            offered += actions.quick_fixes(self._shown(checked), positions.span(params.range))
        if is_asked_for(FIX_ALL, context.only) and _has_safe_fix(checked):
            fixed = await self._documents.fixed(uri)
            offered += [actions.fix_all(fixed)] if fixed is not None else []
        return offered

    async def _hover(self, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        inferred = await self._documents.dtypes(uri)
        checked = self._documents.last(uri)
        known = inferred or checked
        if known is None:
            return None
        places, path = self._places(known.buffer), known.buffer.path
        found: list[tuple[Finding, Announced]] = []
        if checked is not None:
            rules = _rules(checked)
            found = [(finding, rules[finding.code]) for finding in checked.result.findings]
        location = places.of(path).location(params.position)
        return hover(location, path, found, inferred.file if inferred is not None else None, places)

    async def _inlay_hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        inferred = await self._documents.dtypes(params.text_document.uri)
        if inferred is None:
            return []
        scenario = self._scenario or next(iter(inferred.named), USUAL_SCENARIO)
        positions = self._places(inferred.buffer).of(inferred.buffer.path)
        return list(hints(inferred.file, scenario, positions.span(params.range), positions))

    def _shown(self, checked: Checked) -> list[Shown]:
        places, rules = self._places(checked.buffer), _rules(checked)
        return [(f, diagnostic(f, rules.get(f.code), places)) for f in checked.result.findings]

    def _places(self, buffer: Buffer) -> Places:
        """Places in all files, and in this version of one."""
        encoding = self._server.server_capabilities.position_encoding or types.PositionEncodingKind.Utf16
        return Places([*self._documents, buffer], types.PositionEncodingKind(encoding))

    @property
    def _takes_versions(self) -> bool:
        workspace = self._server.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace is not None else None
        return bool(edits is not None and edits.document_changes)

    def _log(self, line: str) -> None:
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Error, f"amplint: {line}"))

    def _show(self, kind: types.MessageType, text: str) -> None:
        self._server.window_show_message(types.ShowMessageParams(kind, text))


def _rules(checked: Checked) -> dict[str, Announced]:
    return {rule.code: rule for rule in checked.options.rules} if checked.options is not None else {}


def _has_safe_fix(checked: Checked) -> bool:
    return any(f.fix is not None and f.fix.applicability is Applicability.SAFE for f in checked.result.findings)
