"""SARIF 2.1.0: one run, with fixes, the places behind each finding, and what its rule says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from amplint import __version__
from amplint.finding import Applicability, Severity
from amplint.report.account import NOT_COUNTED, SAME_CAUSE, claim, help_text, in_cell, place
from amplint.rule_base import DOCUMENTATION_SITE, documentation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Cause, Finding, Fix, Place
    from amplint.report import Context, Line
    from amplint.rule_base import Announced
    from amplint.source import Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"
"""Stands for the current folder in the names of the files below it."""
FINGERPRINT = "amplint/v1"


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings as one JSON document."""
    codes = sorted({finding.code for finding in findings})
    run = {
        "tool": {
            "driver": {
                "name": "amplint",
                "semanticVersion": __version__,
                "informationUri": DOCUMENTATION_SITE,
                "rules": [_rule(code, context.rules.get(code)) for code in codes],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not context.errors,
                "toolExecutionNotifications": [{"level": "error", "message": {"text": e}} for e in context.errors],
            }
        ],
        "originalUriBaseIds": {BASE: {"uri": f"{Path.cwd().as_uri().rstrip('/')}/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code), context) for finding in findings],
    }
    for line in json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2).split("\n"):
        yield [(line, "")]


def _rule(code: str, announced: Announced | None) -> dict[str, Any]:
    if announced is None:
        return {"id": code}
    rule = announced.imported()
    text = documentation(rule)
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": f"{rule.summary}."},
        "fullDescription": {"text": _what_it_does(text) or f"{rule.summary}."},
        "help": {"text": text, "markdown": text},
        **({"helpUri": rule.url} if rule.url else {}),
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {
            "tags": ["mixed-precision", "pytorch"],
            "problem.severity": rule.severity.value,
            "evidence": rule.evidence.value,
            "fix": rule.fix.value if rule.fix is not None else "none",
        },
    }


def _what_it_does(text: str) -> str:
    """The section of that heading in a rule's documentation, as one paragraph; empty where there is none."""
    found = re.search(r"^What it does\n-+\n(.+?)(?=\n\n\S[^\n]*\n---|\Z)", text, re.MULTILINE | re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def _result(finding: Finding, rule_index: int, context: Context) -> dict[str, Any]:
    text, related = _told(finding, context)
    document: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": "error" if finding.severity is Severity.ERROR else "warning",
        "message": {"text": text},
        "locations": [_own_location(finding, context)],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": _properties(finding, context),
    }
    if related:
        document["relatedLocations"] = related
    if finding.fix is not None and finding.fix.applicability is not Applicability.DISPLAY and finding.cell is None:
        document["fixes"] = [_fix(finding, finding.fix, context)]
    if context.refuted(finding):
        document["suppressions"] = [{"kind": "external", "status": "accepted", "justification": NOT_COUNTED}]
    return document


def _told(finding: Finding, context: Context) -> tuple[str, list[dict[str, Any]]]:
    """The message, in which each place behind the finding is a link, and these places by the numbers of the links."""
    related: list[dict[str, Any]] = []

    def link(text: str, said: str, at: Cause | Place) -> str:
        number = len(related) + 1
        related.append({"id": number, "message": {"text": _plain(in_cell(at) + said)}, **_location(at)})
        return f"[{_label(text)}]({number})"

    causes = [link(cause.message, cause.message, cause) for cause in finding.causes]
    also = [link(place(other.filename, other.cell, other.span.start), SAME_CAUSE, other) for other in finding.also]
    sentences = [in_cell(finding) + _plain(claim(finding, context))]
    if causes:
        sentences.append(f"Causes: {'; '.join(causes)}")
    if also:
        sentences.append(f"Also at {', '.join(also)}")
    return "".join(f"{sentence}. " for sentence in sentences).rstrip(), related


def _plain(text: str) -> str:
    """Text in which nothing reads as a link or as a placeholder."""
    text = re.sub(r"\{(\d+)\}", r"{{\1}}", text)
    return _label(text) if "](" in text else text


def _label(text: str) -> str:
    """Text within a link: what ends one is escaped."""
    return re.sub(r"[\\\[\]]", r"\\\g<0>", text)


def _properties(finding: Finding, context: Context) -> dict[str, Any]:
    proof = context.proof(finding)
    return {
        "certainty": finding.certainty.value,
        "scenarios": list(finding.scenarios),
        "device": finding.device,
        "doubts": [held.doubt.name for held in finding.doubts],
        **({"cell": finding.cell} if finding.cell is not None else {}),
        **(proof.to_json() if proof is not None else {}),
    }


def _own_location(finding: Finding, context: Context) -> dict[str, Any]:
    """Where the finding lies, with the source that is there."""
    location, source = _location(finding), context.source(finding.filename)
    if finding.cell is None and finding.span.end.row <= len(source.lines):
        location["physicalLocation"]["region"]["snippet"] = {"text": source.segment(finding.span)}
    return location


def _location(at: Finding | Cause | Place) -> dict[str, Any]:
    """A place; one in a cell of a notebook has no lines of the file."""
    lines = {"region": _region(at.span)} if at.cell is None else {}
    return {"physicalLocation": {"artifactLocation": _artifact(at.filename), **lines}}


def _artifact(path: Path) -> dict[str, str]:
    try:
        inside = path.relative_to(Path.cwd())
    except ValueError:
        return {"uri": path.as_uri()}
    return {"uri": quote(os.fsencode(inside.as_posix())), "uriBaseId": BASE}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.start.row,
        "startColumn": span.start.column,
        "endLine": span.end.row,
        "endColumn": span.end.column,
    }


def _fix(finding: Finding, fix: Fix, context: Context) -> dict[str, Any]:
    """The edits as they are to be made together, in the order of the file."""
    replacements = [
        {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.content}}
        for edit in sorted(set(fix.edits))
    ]
    return {
        "description": {"text": _plain(help_text(finding, fix, context))},
        "artifactChanges": [{"artifactLocation": _artifact(finding.filename), "replacements": replacements}],
        "properties": {"applicability": fix.applicability.value},
    }
