"""Findings of kinds in preview (see :mod:`amplint.judge.preview`), among those of who asks for all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.scenarios import find_scenario
from amplint.judge.preview import in_preview

if TYPE_CHECKING:
    from amplint.finding import Finding


def is_kept_back(finding: Finding, asked: frozenset[str]) -> bool:
    """Whether a finding is not told by default, for its kind; ``asked`` are the codes of rules that tell all kinds."""
    found = map(find_scenario, finding.scenarios)
    half = not any(scenario.autocast for scenario in found if scenario is not None)
    return finding.code not in asked and in_preview(finding.code, half, finding.certainty, finding.severity)
