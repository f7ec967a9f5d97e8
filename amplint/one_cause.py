"""One cause, one finding: what fails for the same cast, constructor, parameter or class is told once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from amplint.finding import Edit, Finding, Fix, Place
from amplint.judge.certainty import SUREST_FIRST

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence


def one_for_each_cause(findings: Iterable[Finding]) -> list[Finding]:
    """The findings of one file, those with a common culprit as one: the surest, at its first place, others ``also``.

    A finding joins another of its group, the rules that one mend settles, where it claims no other severity and fails
    in no other scenario. The fix mends all places where each has one of the same applicability, and no two of their
    edits touch; else it mends the place of the finding.
    """
    groups: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        key = (finding.culprit, finding.mend or finding.code) if finding.culprit is not None else id(finding)
        groups.setdefault(key, []).append(finding)
    told = [one for group in groups.values() for one in _joined(group)]
    return sorted(told, key=lambda finding: finding.sort_key)


def at_each_place(findings: Iterable[Finding]) -> list[Finding]:
    """The findings of one file, once for each of their places in it."""
    told = []
    for finding in findings:
        here = (place.span for place in finding.also if place.filename == finding.filename)
        told += [replace(finding, span=span, also=()) for span in dict.fromkeys((finding.span, *here))]
    return sorted(told, key=lambda finding: finding.sort_key)


def _joined(group: Sequence[Finding]) -> list[Finding]:
    rest = sorted(group, key=_order)
    told = []
    while rest:
        first, *others = rest
        same = [f for f in others if f.severity is first.severity and set(f.scenarios) <= set(first.scenarios)]
        rest = [f for f in others if f not in same]
        told.append(_with(first, sorted(same, key=lambda f: f.sort_key)))
    return told


def _order(finding: Finding) -> tuple[object, ...]:
    """The surest first, then what names most scenarios, then what comes behind the culprit: it may fail soonest."""
    culprit = finding.culprit
    before = culprit is not None and culprit.filename == finding.filename and finding.span < culprit.span
    return SUREST_FIRST.index(finding.certainty), -len(finding.scenarios), before, finding.sort_key


def _with(first: Finding, others: Sequence[Finding]) -> Finding:
    if not others:
        return first
    places = dict.fromkeys(
        place for finding in (first, *others) for place in (Place(finding.filename, finding.span), *finding.also)
    )
    own = Place(first.filename, first.span)
    also = tuple(sorted((place for place in places if place != own), key=lambda p: (str(p.filename), p.span)))
    return replace(first, also=also, fix=_common(first.fix, [finding.fix for finding in others]))


def _common(fix: Fix | None, others: Sequence[Fix | None]) -> Fix | None:
    """One fix of all places, else the first one's."""
    if fix is None:
        return None
    edits: set[Edit] = set(fix.edits)
    for other in others:
        if other is None or other.applicability is not fix.applicability:
            return fix
        edits.update(other.edits)
    ordered = sorted(edits)
    apart = all(a.span.end <= b.span.start and a.span != b.span for a, b in pairwise(ordered))
    return replace(fix, edits=tuple(ordered)) if apart else fix
