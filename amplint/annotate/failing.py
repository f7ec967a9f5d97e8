"""Where a file fails, by what ``check`` finds: errors at their expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.finding import Finding
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.source import Span


@dataclass(frozen=True, slots=True)
class Failing:
    """An expression that raises, or gives inf or nan, in the scenarios of these numbers, and the rule that says so."""

    span: Span
    code: str
    name: str
    message: str
    lanes: tuple[int, ...]


def failing(findings: Iterable[Finding], scenarios: Sequence[Scenario]) -> tuple[Failing, ...]:
    """The errors among the findings of one file, by place."""
    found = [
        Failing(
            finding.span,
            finding.code,
            finding.name,
            finding.message,
            tuple(lane for lane, scenario in enumerate(scenarios) if scenario.name in finding.scenarios),
        )
        for finding in findings
        if finding.severity is Severity.ERROR
    ]
    return tuple(sorted((one for one in found if one.lanes), key=lambda one: (one.span, one.code)))
