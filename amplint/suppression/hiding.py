"""What the comments of a file silence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from amplint.suppression.directives import OF_LINES, Directive, Form, Selector, directives

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.finding import Finding
    from amplint.source import Source

_QUICK = re.compile(r"amplint|noqa", re.IGNORECASE)

Hiding: TypeAlias = tuple[Directive, Selector | None]
"""A code of a comment; None for a comment without codes."""


class Suppressions:
    """The suppression comments of one file, and which of them silenced something so far."""

    def __init__(self, source: Source) -> None:
        self.directives = directives(source) if _QUICK.search(source.text) else []
        self._used: set[Hiding] = set()

    def left(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that no comment silences."""
        return [finding for finding in findings if not self.hides(finding)]

    def hides(self, finding: Finding) -> bool:
        """Whether a comment silences a finding; all comments that do are used then."""
        hiding = [key for one in self.directives if one.covers(finding) for key in _hiding(one, finding)]
        self._used.update(hiding)
        return bool(hiding)

    def hides_report(self, report: Finding, about: Directive) -> bool:
        """Whether what is reported about a comment is silenced, as by ``ignore[AMP900]`` in that comment.

        An ``ignore`` without codes does not silence what is said about it.
        """
        hiding = [
            (directive, selector)
            for one in self.directives
            if one.covers(report) or (one is about and one.form in OF_LINES)
            for directive, selector in _hiding(one, report)
            if selector is not None or directive.form is not Form.IGNORE
        ]
        self._used.update(hiding)
        return bool(hiding)

    def used(self, directive: Directive, selector: Selector | None) -> bool:
        """Whether a code of a comment, or a comment without codes, silenced something."""
        return (directive, selector) in self._used


def _hiding(directive: Directive, finding: Finding) -> Iterator[Hiding]:
    """What in a comment names a finding."""
    if directive.blanket:
        yield directive, None
    for selector in directive.selectors:
        if selector.matches(finding):
            yield directive, selector
