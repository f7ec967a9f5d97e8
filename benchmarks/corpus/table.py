"""The figures, and the rows asked for, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpus.rows import DECIDABLE_IN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpus.judging import Found, Judged, JudgedNegative, Outcome

API = "AMP6"
"""Prefix of the rules about the API, whose findings are counted apart."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts over some cases. ``fixed`` of the ``fixable`` hits are gone after a fix that cures all of the defect;
    ``findings`` (``api`` of them of AMP6xx) lie in files of ``lines`` lines, a file of several cases once. ``by_cause``
    are no hits, but a cause of a fitting finding lies where one would."""

    cases: int
    hits: int
    fixable: int
    fixed: int
    findings: int
    api: int
    lines: int
    by_cause: int

    @property
    def density(self) -> float:
        """Findings per 10,000 lines, AMP6xx not counted."""
        return 1e4 * (self.findings - self.api) / max(self.lines, 1)


def figures(judged: Iterable[Judged]) -> Figures:
    """Count over some cases."""
    rows = list(judged)
    hits = [one for one in rows if one.hits]
    fixable = [one for one in hits if one.case.post_clean]
    files = {one.case.before: one for one in rows}.values()
    found = [finding for one in files for finding in one.findings]
    return Figures(
        cases=len(rows),
        hits=len(hits),
        fixable=len(fixable),
        fixed=sum(not one.kept for one in fixable),
        findings=len(found),
        api=sum(finding.code.startswith(API) for finding in found),
        lines=sum(one.length for one in files),
        by_cause=sum(bool(one.by_cause) and not one.hits for one in rows),
    )


def lines(outcome: Outcome) -> list[str]:
    """A line for each label and each value of ``decidable``, then the totals."""
    judged = outcome.judged
    alone = {one.case.id for one in outcome.alone if one.hits}
    groups = [(label, [one for one in judged if one.case.label == label]) for label in _sorted(judged, "label")]
    totals = [(name, [one for one in judged if one.case.decidable == name]) for name in _sorted(judged, "decidable")]
    in_file = [one for one in judged if one.case.decidable in DECIDABLE_IN_FILE]
    totals += [("decidable in one file", in_file), ("all", list(judged))]
    width = max(len(name) for name, _ in (*groups, *totals))
    text = [
        f"{'':{width}}  {'cases':>5} {'found':>5} {'recall':>7} {'alone':>6} {'by a cause':>10}"
        f" {'gone after fix':>15} {'per 10,000 lines':>17}"
    ]
    text += [_line(name, rows, alone, width) for name, rows in groups]
    text.append("")
    text += [_line(name, rows, alone, width) for name, rows in totals]
    total = figures(judged)
    corrected = sum(bool(one.case.corrected) for one in judged)
    text += [
        "",
        f"{total.findings} findings in {total.lines} lines before the fixes, {total.api} of them {API}xx,"
        " which 'per 10,000 lines' leaves out",
    ]
    if corrected:
        text.append(f"{corrected} of the cases were corrected; cases.jsonl says why")
    if outcome.negatives:
        alarms = [finding for one in outcome.negatives for finding in one.alarms]
        api = sum(bool(one.alarms) and all(f.code.startswith(API) for f in one.alarms) for one in outcome.negatives)
        errors = sum(finding.severity == "error" for finding in alarms)
        text.append(
            f"negatives: {sum(bool(one.alarms) for one in outcome.negatives)} of {len(outcome.negatives)} flagged"
            f" ({sum(bool(one.alarms) for one in outcome.alone_negatives)} alone),"
            f" {api} of them only by {API}xx; {errors} findings of severity error"
        )
        justified = sum(bool(one.justified) for one in outcome.negatives)
        if justified:
            text[-1] += f"; {justified} more are rightly found, negatives.jsonl says why"
    return text


def missed(judged: Iterable[Judged]) -> list[str]:
    """The cases without a fitting finding, with what else was found there, or with that one as a cause."""
    return [
        _row(one, one.near)
        + (f"  by a cause: {_findings(one.by_cause)}" if one.by_cause else "")
        + f"  {one.case.context}"
        for one in judged
        if not one.hits
    ]


def hit(judged: Iterable[Judged]) -> list[str]:
    """The cases with a fitting finding."""
    return [_row(one, one.hits) for one in judged if one.hits]


def kept(judged: Iterable[Judged]) -> list[str]:
    """The cases whose fitting finding is still there after the fix."""
    return [
        _row(one, one.kept) + ("" if one.case.post_clean else "  (the fix left a part of the defect)")
        for one in judged
        if one.kept
    ]


def flagged(negatives: Iterable[JudgedNegative]) -> list[str]:
    """The idioms with a finding."""
    return [
        f"{one.negative.id:30} {one.negative.place.path}:{one.negative.lines[0]}  {_findings(one.alarms)}"
        for one in negatives
        if one.alarms
    ]


def _sorted(judged: Sequence[Judged], name: str) -> list[str]:
    return sorted({getattr(one.case, name) for one in judged})


def _line(name: str, judged: Sequence[Judged], alone: set[str], width: int) -> str:
    counted = figures(judged)
    recall = f"{counted.hits / counted.cases:7.2f}" if counted.cases else f"{'-':>7}"
    by_itself = sum(one.case.id in alone for one in judged)
    gone = f"{counted.fixed} of {counted.fixable}" if counted.fixable else "-"
    found = f"{counted.cases:5} {counted.hits:5} {recall} {by_itself:6} {counted.by_cause:10}"
    return f"{name:{width}}  {found} {gone:>15} {counted.density:17.1f}"


def _row(one: Judged, findings: Iterable[Found]) -> str:
    case = one.case
    where = f"{case.before.path}:{','.join(map(str, case.lines))}"
    return f"{case.id:24} {case.label:28} {case.decidable:7} {where}  {_findings(findings)}".rstrip()


def _findings(findings: Iterable[Found]) -> str:
    return "; ".join(f"{finding.code} at {finding.row} ({finding.severity})" for finding in findings)
