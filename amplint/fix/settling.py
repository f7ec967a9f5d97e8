"""Fixing one file: apply, check again, take back what was no fix, repeat until nothing changes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from amplint.fix.edits import Change, Moves, apply_changes, changes
from amplint.fix.selection import allowed, without_overlaps
from amplint.fix.wrapping import wrapped
from amplint.frozen import dataclass
from amplint.line_length import line_length
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from amplint.finding import Applicability, FileResult, Finding

    Check: TypeAlias = Callable[[Source], FileResult]

MAX_CHECKS = 100
"""Fixes that are still offered after the file was checked so often are left for another run."""
MAX_CASCADE = 4
"""Fixes that are made of what the fix before them uncovered."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A source after fixing: what is still found in it, how many findings went, the codes of rules whose fixes would
    have broken it, and whether fixes were left for another run."""

    source: Source
    result: FileResult
    fixed: int = 0
    broken: tuple[str, ...] = ()
    settled: bool = True


def fix_source(
    source: Source, result: FileResult, highest: Applicability, check: Check, kept_back: Check | None = None
) -> Outcome:
    """Apply the fixes of ``result`` pass by pass, checking again after each.

    A fix stays undone that leaves its finding in place, and one that makes findings which were not there and which no
    fix of their own cures: also of kinds that are not told, which ``kept_back`` finds, in scenarios in which nothing
    failed that was fixed. One after which the file does not parse, or whose edits overlap, is told in ``broken`` too.
    What was undone is tried once more when everything else is settled, so that a second run changes nothing.
    """
    return _Settling(highest, check, kept_back).run(source, result)


@dataclass(frozen=True, slots=True)
class _Known:
    """A finding of before: its code and scenarios, and between which offsets it lies now. ``index`` is its place in the
    result."""

    code: str
    scenarios: frozenset[str]
    first: int
    last: int
    index: int

    def moved(self, moves: Moves) -> _Known:
        return replace(self, first=moves.after(self.first)[0], last=moves.after(self.last)[1])


@dataclass(frozen=True, slots=True)
class _Trial:
    """What came of applying fixes: the fixed file, or else why it is not to be."""

    source: Source | None = None
    result: FileResult | None = None
    stubborn: tuple[int, ...] = ()
    """Findings that their own fixes left in place, by their places in the result."""
    broken: bool = False
    moves: tuple[Moves, ...] = ()


class _Settling:
    """The state of fixing one file."""

    def __init__(self, highest: Applicability, check: Check, kept_back: Check | None) -> None:
        self._highest = highest
        self._check = check
        self._kept_back = kept_back
        self._hidden: tuple[Source, FileResult] | None = None
        self._checks = 0
        self._broken: set[str] = set()

    def run(self, source: Source, result: FileResult) -> Outcome:
        found = len(result.findings)
        refused: set[_Known] = set()
        retried, limit = True, len(result.findings)
        settled = False
        while self._checks < MAX_CHECKS:
            known = _known(source, result)
            unwanted = {replace(entry, index=0) for entry in refused}
            wanted = [
                finding
                for finding, entry in zip(result.findings, known, strict=True)
                if allowed(finding, self._highest) and replace(entry, index=0) not in unwanted
            ]
            chosen = without_overlaps(wanted, source)[:limit]
            if not chosen and retried:
                settled = True
                break
            if not chosen:
                refused, retried, limit = set(), True, found
                continue
            numbers = {id(finding): number for number, finding in enumerate(result.findings)}
            picked = [numbers[id(finding)] for finding in chosen]
            trial = self._try(source, result, chosen, frozenset(picked), known)
            if trial.source is not None and trial.result is not None:
                source, result, limit = trial.source, trial.result, found
                for moves in trial.moves:
                    refused = {entry.moved(moves) for entry in refused}
                retried = not refused
            elif trial.stubborn:
                refused |= {known[number] for number in trial.stubborn}
            elif len(chosen) > 1:
                limit = len(chosen) // 2
            else:
                refused.add(known[picked[0]])
                limit = found
                if trial.broken:
                    self._broken.add(chosen[0].code)
        return Outcome(source, result, found - len(result.findings), tuple(sorted(self._broken)), settled)

    def _try(
        self, source: Source, result: FileResult, chosen: Sequence[Finding], picked: frozenset[int], known: list[_Known]
    ) -> _Trial:
        """Apply fixes, and those of what they uncover, and see whether that leaves fewer findings and no new ones."""
        failures, before = len(result.failures), source
        passed: list[Moves] = []
        failed = {scenario for finding in chosen for scenario in finding.scenarios}
        for _ in range(MAX_CASCADE):
            made = _made(source, chosen)
            fixed = _parsed(source, made) if made is not None else None
            if made is None or fixed is None:
                return _Trial(broken=True)
            steps = [Moves(made)]
            longest = line_length(source.path)
            wraps = wrapped(source, made, fixed, longest) if longest is not None else []
            if wraps:
                fixed = apply_changes(fixed, wraps)
                steps.append(Moves(wraps))
            source, result = fixed, self._checked(fixed)
            passed += steps
            for moves in steps:
                known = [entry.moved(moves) for entry in known]
            left, new = _compared(known, picked, source, result.findings)
            stubborn = picked & left
            if stubborn or len(result.failures) > failures:
                return _Trial(stubborn=tuple(stubborn))
            if not new:
                worse = self._fails_elsewhere(before, source, passed, failed)
                return _Trial() if worse else _Trial(source, result, moves=tuple(passed))
            chosen = without_overlaps((finding for finding in new if allowed(finding, self._highest)), source)
            failed.update(scenario for finding in chosen for scenario in finding.scenarios)
            if len(chosen) < len(new):
                return _Trial()
        return _Trial()

    def _fails_elsewhere(self, before: Source, after: Source, passed: Iterable[Moves], failed: set[str]) -> bool:
        """Whether something is new of a kind that is not told, in a scenario in which nothing failed that was fixed."""
        if self._kept_back is None:
            return False
        if self._hidden is None or self._hidden[0] is not before:
            self._hidden = before, self._kept_back(before)
        known = _known(*self._hidden)
        for moves in passed:
            known = [entry.moved(moves) for entry in known]
        hidden = self._kept_back(after)
        _, new = _compared(known, frozenset(), after, hidden.findings)
        worse = any(set(finding.scenarios) - failed for finding in new)
        if not worse:
            self._hidden = after, hidden
        return worse

    def _checked(self, source: Source) -> FileResult:
        self._checks += 1
        return self._check(source)


def _known(source: Source, result: FileResult) -> list[_Known]:
    placed = ((finding, source.offset(finding.span.start)) for finding in result.findings)
    return [_Known(f.code, frozenset(f.scenarios), place, place, n) for n, (f, place) in enumerate(placed)]


def _made(source: Source, chosen: Iterable[Finding]) -> list[Change] | None:
    """What fixes change, or None where edits of one overlap."""
    made = changes(source, (edit for finding in chosen if finding.fix for edit in finding.fix.edits))
    return None if any(one[1] > other[0] for one, other in pairwise(made)) else made


def _parsed(source: Source, made: Sequence[tuple[int, int, str]]) -> Source | None:
    """The source with changes made, or None where it then no longer parses."""
    try:
        changed = apply_changes(source, made)
        changed.tree  # noqa: B018
    except (SourceError, UnicodeEncodeError):
        return None
    return changed


def _compared(
    known: Iterable[_Known], picked: frozenset[int], source: Source, findings: Iterable[Finding]
) -> tuple[set[int], list[Finding]]:
    """Which findings of before are still there, and what is found that was not.

    Where one of several may be what is left, it is one whose fix was not applied. What now holds in fewer scenarios is
    not what was there: its fix cured the others.
    """
    exact: defaultdict[tuple[str, int], list[_Known]] = defaultdict(list)
    vague: defaultdict[str, list[_Known]] = defaultdict(list)
    for entry in sorted(known, key=lambda entry: (entry.index not in picked, entry.first - entry.last)):
        if entry.first == entry.last:
            exact[entry.code, entry.first].append(entry)
        else:
            vague[entry.code].append(entry)
    left: set[int] = set()
    unplaced = []
    for finding in findings:
        same = exact[finding.code, source.offset(finding.span.start)]
        if same:
            left |= _unless_cured(same.pop(), finding)
        else:
            unplaced.append(finding)
    new = []
    for finding in unplaced:
        place = source.offset(finding.span.start)
        around = [entry for entry in vague[finding.code] if entry.first <= place <= entry.last]
        if around:
            left |= _unless_cured(around[-1], finding)
            vague[finding.code].remove(around[-1])
        else:
            new.append(finding)
    return left, new


def _unless_cured(entry: _Known, finding: Finding) -> set[int]:
    """The place of a finding of before, if what is found there holds in as many scenarios."""
    return set() if set(finding.scenarios) < entry.scenarios else {entry.index}
