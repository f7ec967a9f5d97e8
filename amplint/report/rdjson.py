"""Reviewdog's diagnostics as JSON, with the fixes as changes that it can suggest."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING, Any

from amplint.files import display_path
from amplint.finding import Applicability, Severity
from amplint.report.account import SAME_CAUSE, claim, help_text, in_cell
from amplint.rule_base import DOCUMENTATION_SITE
from amplint.source import SourceError, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Cause, Finding, Fix, Place
    from amplint.report import Context, Line
    from amplint.source import Location, Source


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings as one JSON document."""
    document = {
        "source": {"name": "amplint", "url": DOCUMENTATION_SITE},
        "diagnostics": [_diagnostic(finding, context) for finding in findings],
    }
    for line in json.dumps(document, indent=2).split("\n"):
        yield [(line, "")]


def _diagnostic(finding: Finding, context: Context) -> dict[str, Any]:
    fix, rule = finding.fix, context.rules.get(finding.code)
    message = [in_cell(finding) + claim(finding, context)]
    if fix is not None:
        message.append(f"help: {help_text(finding, fix, context)}")
    document: dict[str, Any] = {
        "message": "\n".join(message),
        "location": _location(finding, context),
        "severity": _severity(finding, context),
        "code": {"value": finding.code, **({"url": rule.url} if rule is not None and rule.url else {})},
    }
    suggestion = (
        _suggestion(fix, context.source(finding.filename)) if fix is not None and finding.cell is None else None
    )
    if suggestion is not None:
        document["suggestions"] = [suggestion]
    related = [_related(cause, cause.message, context) for cause in finding.causes]
    related += [_related(place, SAME_CAUSE, context) for place in finding.also]
    if related:
        document["related_locations"] = related
    return document


def _severity(finding: Finding, context: Context) -> str:
    if context.refuted(finding):
        return "INFO"
    return "ERROR" if finding.severity is Severity.ERROR else "WARNING"


def _suggestion(fix: Fix, source: Source) -> dict[str, Any] | None:
    """The whole fix as one replacement, since one that is taken without the others may break the code.

    None for what is shown only, and where the source can no longer be read.
    """
    edits = sorted(set(fix.edits))
    if not edits or fix.applicability is Applicability.DISPLAY:
        return None
    whole = Span(edits[0].span.start, max(edit.span.end for edit in edits))
    try:
        text, at = "", source.offset(whole.start)
        for edit in edits:
            text += source.text[at : source.offset(edit.span.start)] + edit.content
            at = source.offset(edit.span.end)
    except (IndexError, SourceError):
        return None
    return {"range": _range(whole, source), "text": text}


def _related(place: Cause | Place, text: str, context: Context) -> dict[str, Any]:
    return {"message": in_cell(place) + text, "location": _location(place, context)}


def _location(place: Finding | Cause | Place, context: Context) -> dict[str, Any]:
    """A place; one in a cell of a notebook has no lines of the file."""
    lines = {"range": _range(place.span, context.source(place.filename))} if place.cell is None else {}
    return {"path": display_path(place.filename), **lines}


def _range(span: Span, source: Source) -> dict[str, Any]:
    return {"start": _position(span.start, source), "end": _position(span.end, source)}


def _position(location: Location, source: Source) -> dict[str, int]:
    """Columns count the bytes of a line in UTF-8, from 1; those of a byte order mark, which no text has, too."""
    before = source.line(location.row)[: location.column - 1]
    marked = location.row == 1 and source.data.startswith(codecs.BOM_UTF8)
    return {"line": location.row, "column": len(before.encode()) + 1 + (len(codecs.BOM_UTF8) if marked else 0)}
