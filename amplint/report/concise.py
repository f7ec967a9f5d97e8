"""One line a finding: ``path:row:col: CODE message [scenarios]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.files import place_name
from amplint.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.report import Context, Line


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The findings, one line each."""
    for finding in findings:
        start = finding.span.start
        style = "bold red" if finding.severity is Severity.ERROR else "bold yellow"
        scenarios = f" [{', '.join(finding.scenarios)}]" if finding.scenarios else ""
        place = f"{place_name(finding.filename, finding.cell)}:{start.row}:{start.column}"
        proof = context.proof(finding)
        verdict = f" ({proof.verdict.value})" if proof is not None else ""
        yield [(place, "bold"), (": ", ""), (finding.code, style), (f" {finding.message}{scenarios}{verdict}", "")]
