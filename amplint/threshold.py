"""How sure and how grave a finding has to be to count."""

from __future__ import annotations

from amplint.finding import Certainty, Finding, Severity
from amplint.frozen import dataclass
from amplint.judge.certainty import SUREST_FIRST


@dataclass(frozen=True, slots=True)
class Threshold:
    """What is below it is neither reported nor fixed nor counted; the default is :data:`EVERYTHING`."""

    certainty: Certainty = Certainty.POSSIBLE
    severity: Severity = Severity.WARNING

    def keeps(self, finding: Finding) -> bool:
        """Whether a finding counts."""
        sure = SUREST_FIRST.index(finding.certainty) <= SUREST_FIRST.index(self.certainty)
        return sure and (self.severity is Severity.WARNING or finding.severity is Severity.ERROR)


EVERYTHING = Threshold()
POSSIBLE = Certainty.POSSIBLE
"""The least of what ``--pedantic`` asks for."""
UNASKED = Certainty.LIKELY
"""The least of what is told to who asks for nothing."""
