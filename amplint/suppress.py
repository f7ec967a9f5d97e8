"""Comments that silence findings: ``# amplint: ignore[AMP101]``, ``# noqa: AMP101``, ``# amplint: ignore-file``."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.finding import Finding
    from amplint.source import Source

_IGNORE = re.compile(r"#\s*amplint:\s*ignore(?!-)(?:\s*\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)
_IGNORE_FILE = re.compile(r"#\s*amplint:\s*ignore-file\b", re.IGNORECASE)
_NOQA = re.compile(r"#\s*noqa\b(?P<colon>\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)?)?", re.IGNORECASE)
_QUICK = re.compile(r"amplint:|noqa", re.IGNORECASE)

Selectors = tuple[str, ...]
"""Codes, prefixes or names that a comment silences; empty stands for every code."""


class Suppressions:
    """The suppression comments of one file, by row. Comments inside strings do not count."""

    def __init__(self, source: Source) -> None:
        self.whole_file = False
        self.rows: dict[int, list[Selectors]] = {}
        if _QUICK.search(source.text):
            self._read(source)

    def _read(self, source: Source) -> None:
        heading = True
        try:
            for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
                if token.type == tokenize.COMMENT:
                    self._comment(token.start[0], token.string, heading)
                elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.STRING, tokenize.ENCODING):
                    heading = False
        except (tokenize.TokenError, SyntaxError):
            return

    def _comment(self, row: int, text: str, heading: bool) -> None:
        if heading and _IGNORE_FILE.search(text):
            self.whole_file = True
        for match in _IGNORE.finditer(text):
            self._add(row, match["codes"])
        noqa = _NOQA.search(text)
        if noqa is not None and (noqa["codes"] or not noqa["colon"]):
            self._add(row, noqa["codes"])

    def _add(self, row: int, codes: str | None) -> None:
        selectors = tuple(code for code in re.split(r"[\s,]+", codes or "") if code)
        if selectors or codes is None:
            self.rows.setdefault(row, []).append(selectors)

    def hides(self, finding: Finding) -> bool:
        """Whether a comment on the first or last line of the finding silences it, or one at the head of the file."""
        if self.whole_file:
            return True
        span = finding.span
        return any(
            not selectors or any(_matches(selector, finding) for selector in selectors)
            for row in {span.start.row, span.end.row}
            for selectors in self.rows.get(row, ())
        )


def _matches(selector: str, finding: Finding) -> bool:
    return finding.code.startswith(selector.upper()) or selector.lower() == finding.name


def without_suppressed(findings: Iterable[Finding], source: Source) -> list[Finding]:
    """The findings that no comment silences."""
    findings = list(findings)
    if not findings:
        return findings
    suppressions = Suppressions(source)
    return [finding for finding in findings if not suppressions.hides(finding)]
