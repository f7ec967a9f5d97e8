"""A report for GitLab's Code Quality: a JSON list of issues."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from amplint.finding import Certainty, Severity
from amplint.report.account import claim, in_cell
from amplint.report.repository import path_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Finding
    from amplint.report import Context, Line


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings as one JSON document."""
    for line in json.dumps([_issue(finding, context) for finding in findings], indent=2).split("\n"):
        yield [(line, "")]


def _issue(finding: Finding, context: Context) -> dict[str, Any]:
    path = path_in("CI_PROJECT_DIR", finding.filename)
    first, last = finding.span.start.row, finding.span.end.row
    if finding.cell is not None:
        first = last = 1
    return {
        "description": f"{in_cell(finding)}{finding.code} {claim(finding, context)}",
        "check_name": f"{finding.code} {finding.name}",
        "fingerprint": _fingerprint(path, finding),
        "severity": _severity(finding, context),
        "location": {"path": path, "lines": {"begin": first, "end": last}},
    }


def _fingerprint(path: str, finding: Finding) -> str:
    """One that no other finding of the report has: those of equal code in two files are equal in amplint's own."""
    key = f"{path}\0{finding.fingerprint}"
    return hashlib.blake2b(key.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _severity(finding: Finding, context: Context) -> str:
    """GitLab's word for severity and certainty."""
    if context.refuted(finding) or finding.certainty is Certainty.POSSIBLE:
        return "info"
    if finding.severity is Severity.WARNING:
        return "minor"
    return "critical" if finding.certainty is Certainty.PROVEN else "major"
