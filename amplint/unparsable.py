"""AMP901, amplint's own code: a file that is not Python source."""

from __future__ import annotations

import re
from sys import version_info
from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.rule_base import Rule, finding_of
from amplint.source import Location, SourceError, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.claims.suspect import Suspect
    from amplint.finding import Finding
    from amplint.infer.state.facts import FileFacts
    from amplint.source import Source


class UnparsableFile(Rule):
    """The file cannot be read as Python source, so nothing in it was checked.

    What it does
    ------------
    Reports a file that does not decode in its declared encoding, that Python cannot parse, or that is nested too
    deeply to be analysed. The other files are still checked. A template, where Python stops at `{{ name }}`,
    `{% if %}`, `${name}`, `$name`, `$$`, `?1` or `<%`, is no Python and is not reported, and no more is a file in which
    macOS keeps another's attributes. In a notebook each such cell is reported, and the other cells are checked.

    Why it is bad
    -------------
    A file that is skipped silently looks clean.

    How it shows
    ------------
    `SyntaxError` when the file is imported. Source of a newer Python than the one that runs amplint is a warning only,
    and the message names that one.

    Example
    -------
    ```python
    def forward(self, x:
        return x
    ```

    Fix safety
    ----------
    No fix. To check the other files only, exclude the file or pass `--ignore AMP901`.
    """

    code = "AMP901"
    name = "unparsable-file"
    severity = Severity.ERROR
    tokens = ()

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return ()

    def finding(self, source: Source, error: SourceError, device: str, whole: str = "file") -> Finding:
        """The finding that stands for a whole file, or a whole cell, where the parser stopped."""
        from amplint.claims.suspect import Suspect
        from amplint.judge.certainty import FORCED

        start = error.location
        span = Span(start, Location(start.row, start.column + 1))
        severity = Severity.WARNING if is_of_newer_python(source, error) else Severity.ERROR
        running = f"{version_info.major}.{version_info.minor}"
        if severity is Severity.WARNING:
            why = f"this needs a newer Python than the {running} that runs amplint"
        elif isinstance(error.__cause__, SyntaxError):
            why = f"Python {running} cannot parse this"
        else:
            why = "this cannot be read as Python source"
        message = f"{why}, so the {whole} was not checked: {error.message}"
        return finding_of(self, Suspect(span, span, message, (), FORCED, severity=severity), source.path, device)


UNPARSABLE = UnparsableFile()

_APPLE_DOUBLE = b"\x00\x05\x16\x07"
"""What the companion files begin with in which macOS keeps a file's attributes (RFC 1740): ``._model.py``."""

_PLACEHOLDER = re.compile(r"\$\{?[^\W\d]|\$\$|\?\w|<%")
"""Where a template of ``string.Template``, Mako or the like is filled in; no Python, of any version, begins so."""


def is_no_source(source: Source, error: SourceError) -> bool:
    """Whether what cannot be parsed is not meant as Python: a template, or a companion file of macOS."""
    return source.data.startswith(_APPLE_DOUBLE) or is_template(source, error)


def is_of_newer_python(source: Source, error: SourceError) -> bool:
    """Whether a newer Python than the one that runs parses a text: libcst does, and meets there what the one that runs
    is too old for: ``except*`` (3.11), ``type X = int``, ``def f[T](x)``, any quotes in f-strings (3.12).
    """
    if version_info >= (3, 12) or not isinstance(error.__cause__, SyntaxError):
        return False
    import libcst as cst
    from libcst import matchers as m

    try:
        tree = cst.parse_module(source.data)
    except Exception:
        return False
    if "f-string" in error.message or m.findall(tree, m.TypeAlias() | m.TypeParameters()):
        return True
    return version_info < (3, 11) and bool(m.findall(tree, m.TryStar()))


def is_template(source: Source, error: SourceError) -> bool:
    """Whether Python stops at the mark of a template, such as ``{{ name }}``: what fills it in makes it Python."""
    try:
        line = source.line(error.location.row)
    except SourceError:
        return False
    if _PLACEHOLDER.match(line, error.location.column - 1):
        return True
    return "{%" in line or ("{{" in line and "}}" in line)
