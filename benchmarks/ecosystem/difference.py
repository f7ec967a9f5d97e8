"""What changed between two results: the findings that are new, those that are gone, those judged otherwise."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ecosystem.releases import Release
    from ecosystem.result import Checked, Found


@dataclass(frozen=True, slots=True)
class Change:
    """A finding ``before`` and ``after``; one of them is None where it is new or gone."""

    release: Release
    before: Found | None
    after: Found | None

    @property
    def found(self) -> Found:
        """The finding as it is now, or was."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def mark(self) -> str:
        """``+`` new, ``-`` gone, ``~`` of another severity, certainty or other scenarios."""
        return "+" if self.before is None else "-" if self.after is None else "~"


def changes(before: Sequence[Checked], after: Sequence[Checked]) -> list[Change]:
    """The changes in the releases that both results have, by release and code.

    Findings with the same path, line and code are the same one, whatever the message.
    """
    earlier = {one.release: one for one in before}
    return [
        change
        for one in after
        if one.release in earlier
        for change in sorted(
            _changes(one.release, earlier[one.release].findings, one.findings),
            key=lambda change: (change.found.code, change.found),
        )
    ]


def _changes(release: Release, before: Sequence[Found], after: Sequence[Found]) -> Iterator[Change]:
    places: dict[tuple[str, int, str], tuple[list[Found], list[Found]]] = defaultdict(lambda: ([], []))
    for side, findings in enumerate((before, after)):
        for finding in sorted(findings):
            places[finding.path, finding.line, finding.code][side].append(finding)
    for olds, news in places.values():
        for old, new in zip_longest(olds, news):
            if old is None or new is None or _verdict(old) != _verdict(new):
                yield Change(release, old, new)


def _verdict(finding: Found) -> tuple[str, str, tuple[str, ...]]:
    return finding.severity, finding.certainty, finding.scenarios


def lines(before: Sequence[Checked], after: Sequence[Checked]) -> list[str]:
    """Each change on a line, then how many a rule has, then the releases that only one of the results has."""
    found = changes(before, after)
    text = [_line(change) for change in found]
    text.append("")
    for code in sorted({change.found.code for change in found}):
        marks = [change.mark for change in found if change.found.code == code]
        text.append(f"{code}  " + "  ".join(f"{mark}{marks.count(mark)}" for mark in "+-~"))
    total = [change.mark for change in found]
    text.append(f"{total.count('+')} new, {total.count('-')} gone, {total.count('~')} judged otherwise")
    releases = ({one.release for one in before}, {one.release for one in after})
    for release in sorted(releases[0] ^ releases[1]):
        text.append(f"not compared: {release} is in {'this' if release in releases[1] else 'the earlier'} result only")
    return text


def _line(change: Change) -> str:
    one = change.found
    text = f"{change.mark} {one.code} {change.release} {one.path}:{one.line}"
    if change.before is not None and change.after is not None:
        return f"{text}  {_told(change.before)} -> {_told(change.after)}"
    return f"{text}  {_told(one)}  {one.message}"


def _told(finding: Found) -> str:
    return f"{finding.severity}, {finding.certainty}, {' '.join(finding.scenarios)}"
