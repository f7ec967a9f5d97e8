"""One line a finding: ``path:row:col: CODE message [scenarios]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.finding import Finding, Severity
from amplint.report.account import claim, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.report import Context, Line, Piece


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings, one line each."""
    for finding in findings:
        where = place(finding.filename, finding.cell, finding.span.start)
        yield [(where, "bold"), (": ", ""), code(finding, context), (f" {claim(finding, context)}", "")]


def code(finding: Finding, context: Context) -> Piece:
    """The code in the colour of its severity, which leads to its rule's page on a terminal that knows links."""
    colour = "red" if finding.severity is Severity.ERROR else "yellow"
    return finding.code, f"bold {colour}{context.link(finding)}"
