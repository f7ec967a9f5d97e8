"""The findings of each file below its name, one line each."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from amplint.files import display_path
from amplint.report.account import claim, position
from amplint.report.columns import printable
from amplint.report.concise import code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Finding
    from amplint.report import Context, Line


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """A file's name, its findings by position, and an empty line."""
    for path, group in groupby(findings, key=lambda finding: finding.filename):
        of_file = list(group)
        yield [(f"{printable(display_path(path))}:", "bold")]
        place = max(len(position(finding)) for finding in of_file)
        named = max(len(finding.code) for finding in of_file)
        for finding in of_file:
            text, style = code(finding, context)
            pad = " " * (named - len(text) + 1)
            yield [(f"  {position(finding):<{place}}  ", ""), (text, style), (f"{pad}{claim(finding, context)}", "")]
        yield []
