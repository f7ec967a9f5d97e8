"""The JSON of the contract: a list of findings, ``[]`` when there is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Cause, Finding, Fix, HeldDoubt
    from amplint.report import Context, Line
    from amplint.source import Location, Span


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings as one JSON document."""
    document = [as_json(finding, context) for finding in findings]
    for line in json.dumps(document, indent=2).split("\n"):
        yield [(line, "")]


def as_json(finding: Finding, context: Context) -> dict[str, Any]:
    """One finding with the keys in the order of the contract."""
    rule = context.rules.get(finding.code)
    proof = context.proof(finding)
    verified = proof.to_json() if proof is not None else {"verdict": None, "run": None}
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        "filename": str(finding.filename),
        "cell": finding.cell,
        **_span(finding.span),
        "scenarios": list(finding.scenarios),
        "device": finding.device,
        "causes": [_cause(cause) for cause in finding.causes],
        "fix": _fix(finding.fix) if finding.fix is not None else None,
        "also": [{"filename": str(place.filename), **_cell(place.cell), **_span(place.span)} for place in finding.also],
        "doubts": [_doubt(held) for held in finding.doubts],
        "fingerprint": finding.fingerprint,
        "url": rule.url if rule is not None else None,
        **(verified if context.proofs is not None else {}),
    }


def _cell(cell: int | None) -> dict[str, int]:
    """The cell of a place in a notebook; nothing elsewhere."""
    return {} if cell is None else {"cell": cell}


def _location(location: Location) -> dict[str, int]:
    return {"row": location.row, "column": location.column}


def _span(span: Span) -> dict[str, Any]:
    return {"location": _location(span.start), "end_location": _location(span.end)}


def _cause(cause: Cause) -> dict[str, Any]:
    return {"filename": str(cause.filename), **_cell(cause.cell), **_span(cause.span), "message": cause.message}


def _doubt(held: HeldDoubt) -> dict[str, Any]:
    location = {**_cell(held.cell), **_location(held.span.start)} if held.span is not None else None
    return {"name": held.doubt.name, "message": held.doubt.message, "location": location}


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [{"content": edit.content, **_cell(edit.cell), **_span(edit.span)} for edit in fix.edits],
    }
