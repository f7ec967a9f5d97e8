"""What runs say about one finding: the most telling of its rows, beside it in the report of ``check --verify``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from amplint.finding import Severity
from amplint.frozen import dataclass
from amplint.verify.alone import HOW
from amplint.verify.verdict import FIX_SAID, FixEffect, Row, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.finding import Finding
    from amplint.rule_base import Announced

_SAID = {
    Verdict.CONFIRMED: "confirmed by a run",
    Verdict.NOT_REPRODUCED: "ran, and did not fail",
    Verdict.NOT_REACHED: "a run did not reach it",
    Verdict.NOT_RUNNABLE: "could not be run",
    Verdict.NEEDS_GPU: "only a GPU can tell",
}


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict on one finding. ``row`` is the run that says most, None where nothing was run for it.

    ``refuted``: the finding claims an error, and its line ran without one in each of its scenarios, in runs of the
    whole target that went on to their end. No warning is ever refuted: what it loses depends on the input's values.
    """

    verdict: Verdict
    row: Row | None = None
    refuted: bool = False

    def __str__(self) -> str:
        if self.row is None:
            return _SAID[self.verdict]
        where = f" ({self.row.scenario}, {self.row.mode})" if self.verdict is Verdict.CONFIRMED else ""
        error = f": {self.row.error}" if self.row.error else ""
        fix = f"; {FIX_SAID[self.row.fix]}" if self.row.fix is not None else ""
        return f"{_SAID[self.verdict]}{where}{error}{fix}"

    def to_json(self) -> dict[str, Any]:
        """``verdict``, and the run that gave it as ``verify --fix-check`` gives it, null where nothing was run."""
        return {"verdict": self.verdict.value, "run": self.row.to_json(fix_check=True) if self.row else None}


def proof(finding: Finding, rows: Sequence[Row], rule: Announced | None) -> Proof:
    """Of all rows of a finding, at each of its places."""
    if not rows:
        return Proof(Verdict.NOT_RUNNABLE)
    order = list(Verdict)
    first = min(rows, key=lambda row: order.index(row.verdict))
    ran = {row.scenario for row in rows if _ran_through(row)}
    claims = finding.severity is Severity.ERROR and rule is not None and rule.claims_failure
    refuted = first.verdict is Verdict.NOT_REPRODUCED and claims and ran.issuperset(finding.scenarios)
    return Proof(first.verdict, first, refuted)


def told(proofs: Sequence[Proof]) -> str:
    """How many findings came to which verdict, for the last line of a report."""
    counts = Counter(proof.verdict for proof in proofs)
    parts = [f"{counts[verdict]} {verdict.value.replace('-', ' ')}" for verdict in Verdict if counts[verdict]]
    refuted = sum(proof.refuted for proof in proofs)
    apart = f"; {refuted} of these ran everywhere without failing and {'are' if refuted > 1 else 'is'} not counted"
    return f"Runs: {', '.join(parts)}{apart if refuted else ''}."


def cured(proofs: Sequence[Proof]) -> str:
    """What runs said of findings that are fixed."""
    confirmed = [proof for proof in proofs if proof.verdict is Verdict.CONFIRMED]
    effects = Counter(proof.row.fix for proof in confirmed if proof.row is not None)
    parts = [f"the fix cures {effects[FixEffect.CURES]}"]
    if effects[FixEffect.CHANGES_NUMERICS]:
        parts.append(f"changes numerics in {effects[FixEffect.CHANGES_NUMERICS]}")
    if effects[FixEffect.DOES_NOT_CURE]:
        parts.append(f"does not cure {effects[FixEffect.DOES_NOT_CURE]}")
    said = f"; {', '.join(parts)}" if confirmed else ""
    return f"Runs before the fix: {len(confirmed)} of {len(proofs)} confirmed{said}."


def _ran_through(row: Row) -> bool:
    """Whether the line ran in a run that went on to its end, of the whole target."""
    whole = row.how is None or not row.how.startswith(HOW)
    return row.verdict is Verdict.NOT_REPRODUCED and row.error is None and whole
