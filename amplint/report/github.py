"""Workflow commands that GitHub Actions turns into annotations of the changed files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.report.account import NOT_COUNTED, account
from amplint.report.repository import path_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Finding
    from amplint.report import Context, Line

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """One command a finding; what a run refutes is a notice."""
    for finding in findings:
        refuted = context.refuted(finding)
        command = "notice" if refuted else "error" if finding.severity is Severity.ERROR else "warning"
        properties = {
            "file": path_in("GITHUB_WORKSPACE", finding.filename),
            **_place(finding),
            "title": f"amplint {finding.code} {finding.name}",
        }
        given = ",".join(f"{key}={str(value).translate(_PROPERTY)}" for key, value in properties.items())
        lines = [*account(finding, context), *([NOT_COUNTED] if refuted else ())]
        data = "\n".join(lines).translate(_DATA)
        yield [(f"::{command} {given}::{data}", "")]


def _place(finding: Finding) -> dict[str, int]:
    """Lines, and columns where the finding lies in one line: GitHub takes none otherwise. A cell has no line there."""
    start, end = finding.span.start, finding.span.end
    if finding.cell is not None:
        return {"line": 1}
    if start.row == end.row:
        return {"line": start.row, "endLine": end.row, "col": start.column, "endColumn": end.column}
    return {"line": start.row, "endLine": end.row}
