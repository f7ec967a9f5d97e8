"""What an editor offers to do about findings: a fix, all safe fixes at once, a comment that silences."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, TypeAlias

from lsprotocol import types

from amplint.finding import Applicability
from amplint.fix.edits import changes
from amplint.server.buffers import lines_of
from amplint.server.ignore_comment import ignoring_one
from amplint.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amplint.finding import Edit, Finding
    from amplint.server.buffers import Buffer
    from amplint.server.positions import Positions

    Shown: TypeAlias = "tuple[Finding, types.Diagnostic]"

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.amplint"


def is_asked_for(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether a request that names kinds of actions means this one; one that names none means all."""
    if only is None:
        return True
    asked = [one.value if isinstance(one, types.CodeActionKind) else one for one in only]
    return any(kind == one or kind.startswith(f"{one}.") for one in asked)


class Actions:
    """The actions for one buffer. ``versioned``: the client takes edits of a named version of a document."""

    def __init__(self, buffer: Buffer, positions: Positions, *, versioned: bool) -> None:
        self._buffer = buffer
        self._positions = positions
        self._versioned = versioned

    def quick_fixes(self, found: Iterable[Shown], around: Span) -> Iterator[types.CodeAction]:
        """The fix of each finding that touches a span, safe ones first; then what silences each."""
        near = [(f, shown) for f, shown in found if f.span.start <= around.end and around.start <= f.span.end]
        fixes = [action for finding, shown in near if (action := self._fix(finding, shown)) is not None]
        yield from sorted(fixes, key=lambda action: not action.is_preferred)
        for finding, shown in near:
            edit = ignoring_one(finding, self._buffer.source)
            if edit is not None:
                yield self._quick(f"amplint {finding.code}: ignore on this line", [edit], shown)

    def fix_all(self, fixed: bytes) -> types.CodeAction:
        """What makes the buffer hold these bytes, line by line, so that the cursor stays where it is."""
        before, after = self._buffer.lines, lines_of(Source(self._buffer.path, fixed).text)
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        edits = [
            types.TextEdit(self._positions.rows(first, last), "".join(after[start:end]))
            for tag, first, last, start, end in matcher.get_opcodes()
            if tag != "equal"
        ]
        return types.CodeAction("amplint: apply all safe fixes", kind=FIX_ALL, edit=self._change(edits))

    def _fix(self, finding: Finding, shown: types.Diagnostic) -> types.CodeAction | None:
        fix = finding.fix
        if fix is None or not fix.edits or fix.applicability is Applicability.DISPLAY:
            return None
        safe = fix.applicability is Applicability.SAFE
        title = f"amplint {finding.code}: {fix.message}{'' if safe else ' (unsafe: may change results)'}"
        return self._quick(title, fix.edits, shown, preferred=safe)

    def _quick(
        self, title: str, edits: Iterable[Edit], shown: types.Diagnostic, *, preferred: bool | None = None
    ) -> types.CodeAction:
        source = self._buffer.source
        made = [
            types.TextEdit(self._positions.range(Span(source.location(start), source.location(end))), content)
            for start, end, content in changes(source, edits)
        ]
        kind = types.CodeActionKind.QuickFix
        return types.CodeAction(title, kind, [shown], is_preferred=preferred, edit=self._change(made))

    def _change(self, edits: list[types.TextEdit]) -> types.WorkspaceEdit:
        uri = self._buffer.uri
        if not self._versioned:
            return types.WorkspaceEdit(changes={uri: edits})
        document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=self._buffer.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, list(edits))])
