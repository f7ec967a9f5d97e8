"""What a rule reports, and what came of a file: plain frozen data that reports, fixes and caches share."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING

from amplint.frozen import sealed

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.source import Source, Span


class Severity(str, Enum):
    """``error``: raises, or gives inf or nan, in the scenarios named. ``warning``: a silent loss, or evidence cited."""

    ERROR = "error"
    WARNING = "warning"


class Certainty(str, Enum):
    """``proven``: the facts force it. ``likely``: one operand is symbolic. ``possible``: only with ``--pedantic``."""

    PROVEN = "proven"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Effect(str, Enum):
    """What a doubt leaves of a claim: ``likely`` or ``possible`` at most, or, with ``drop``, no finding."""

    LIKELY = "likely"
    POSSIBLE = "possible"
    DROP = "drop"


@sealed(frozen=True, slots=True)
class Doubt:
    """A reason for which a claim may be harmless.

    ``codes`` are the rules whose claims it may hold about, none for all. ``message`` is one sentence for the reader.
    amplint's own doubts are the rows of :mod:`amplint.judge.doubts`; a rule pack has a table of its own.
    """

    name: str
    codes: tuple[str, ...]
    effect: Effect
    message: str


@sealed(frozen=True, slots=True)
class HeldDoubt:
    """A doubt that holds about one claim, and where in the claim's file that is seen, None for no one place."""

    doubt: Doubt
    span: Span | None = None
    cell: int | None = None


class Applicability(str, Enum):
    """``safe``: bitwise the same wherever the program ran before. ``unsafe``: changes numerics or behaviour.
    ``display``: shown, never applied."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@sealed(frozen=True, slots=True)
class Place:
    """A span of a file, within a cell of it where it is a notebook."""

    filename: Path
    span: Span
    cell: int | None = None


@sealed(frozen=True, slots=True)
class Cause:
    """A place that decided a dtype, in order from origin to op."""

    filename: Path
    span: Span
    message: str
    cell: int | None = None


@sealed(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text of ``span`` by ``content``; an empty span inserts."""

    span: Span
    content: str
    cell: int | None = None


@sealed(frozen=True, slots=True)
class Fix:
    """A codemod: edits of one file that are applied together or not at all."""

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


@sealed(frozen=True, slots=True)
class Finding:
    """A claim about one place: under ``scenarios``, on ``device``'s cast policy, this fails or loses.

    ``doubts`` are those that lowered the certainty. ``also`` are other places that fail for the same cause: for the
    same ``culprit``, the cast, constructor, parameter or class that does not belong; None where that is not known.
    """

    code: str
    name: str
    message: str
    severity: Severity
    certainty: Certainty
    filename: Path
    span: Span
    scenarios: tuple[str, ...]
    device: str
    causes: tuple[Cause, ...] = ()
    fix: Fix | None = None
    doubts: tuple[HeldDoubt, ...] = ()
    also: tuple[Place, ...] = ()
    culprit: Place | None = None
    mend: str = ""
    """What mends it, where findings of several rules are mended at once; empty for what is its rule's alone."""
    cell: int | None = None
    """The number of a notebook's cell from 1, markdown counted; spans are then within it."""
    fingerprint: str = ""

    @property
    def sort_key(self) -> tuple[str, int, Span, str]:
        return (str(self.filename), self.cell or 0, self.span, self.code)


@sealed(frozen=True, slots=True)
class FileResult:
    """What came of one file.

    ``failures`` are one-line internal errors (amplint's or a rule's own); ``error`` says why the file could not be
    read or written, ``notes`` what the user should know. ``before`` and ``after`` are its bytes where a fix changed
    them, and ``fixed`` counts the findings that are gone. ``followed`` are the other files that the findings rest on.
    ``passed_over`` is the reason why the file turned out, when read, to be none to check. ``known`` are findings that a
    baseline knows, which are not among the others. ``alone``: nothing but the file itself decided all this.
    """

    path: Path
    findings: tuple[Finding, ...] = ()
    failures: tuple[str, ...] = ()
    error: str | None = None
    notes: tuple[str, ...] = ()
    fixed: int = 0
    before: bytes = field(default=b"", repr=False)
    after: bytes | None = field(default=None, repr=False)
    followed: frozenset[Path] = frozenset()
    passed_over: str | None = None
    known: tuple[Finding, ...] = ()
    alone: bool = False


def with_fingerprints(findings: list[Finding], source: Source) -> list[Finding]:
    """Give each finding of one file a fingerprint that survives edits elsewhere in the file, and a formatter.

    It rests on the code, on the source text of the finding as :func:`normalised`, a comment as it is, and on how many
    equals stand before.
    """
    import hashlib

    seen: Counter[str] = Counter()
    out = []
    for finding in sorted(findings, key=lambda f: f.sort_key):
        text = source.segment(finding.span) if finding.span.end.row <= len(source.lines) else ""
        base = f"{finding.code}\0{normalised(text) or text}"
        digest = hashlib.blake2b(f"{base}\0{seen[base]}".encode(), digest_size=8).hexdigest()
        seen[base] += 1
        out.append(replace(finding, fingerprint=digest))
    return out


_PARTS = (
    r"(?P<blank>(?:\s|\\\r?\n|#[^\r\n]*)+)"
    r"|(?P<prefix>\b[bfrtu]{1,2})?(?P<quotes>'''|\"{3}|'|\")(?P<inside>(?:\\.|(?!(?P=quotes))[^\\])*)(?P=quotes)"
    r"|(?P<word>\w+)|."
)


def normalised(text: str) -> str:
    """Source text as no formatter changes it: without comments, white space, trailing commas and the choice of quotes.

    Not by :mod:`ast` or :mod:`tokenize`, whose answers differ between releases of Python.
    """
    parts: list[str] = []
    for match in re.finditer(_PARTS, text, re.DOTALL | re.IGNORECASE):
        part = match[0]
        if match["blank"]:
            continue
        if match["quotes"]:
            plain = not re.search(r"[\"'\\]", match["inside"])
            quotes = '"' * len(match["quotes"]) if plain else match["quotes"]
            part = f"{(match['prefix'] or '').lower()}{quotes}{match['inside']}{quotes}"
        elif part in ")]}" and parts and parts[-1] == ",":
            parts.pop()
        if parts and re.match(r"\w", part) and re.match(r"\w", parts[-1][-1]):
            part = f" {part}"
        parts.append(part)
    return "".join(parts)
