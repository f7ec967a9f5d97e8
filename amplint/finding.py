"""What a rule reports: plain frozen data that reports, fixes and caches share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

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


class Applicability(str, Enum):
    """``safe``: bitwise the same wherever the program ran before. ``unsafe``: changes numerics or behaviour.
    ``display``: shown, never applied."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True)
class Cause:
    """A place that decided a dtype, in order from origin to op."""

    filename: Path
    span: Span
    message: str


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the text of ``span`` by ``content``; an empty span inserts."""

    span: Span
    content: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A codemod: edits of one file that are applied together or not at all."""

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim about one place: under ``scenarios``, on ``device``'s cast policy, this fails or loses."""

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
    cell: int | None = None
    fingerprint: str = ""

    @property
    def sort_key(self) -> tuple[str, int, Span, str]:
        return (str(self.filename), self.cell or 0, self.span, self.code)


def with_fingerprints(findings: list[Finding], source: Source) -> list[Finding]:
    """Give each finding of one file a fingerprint that survives edits elsewhere in the file.

    The fingerprint hashes the code, the message and the source text of the finding's first line without its white
    space, and counts repetitions of the same line.
    """
    seen: dict[str, int] = {}
    out = []
    for finding in sorted(findings, key=lambda f: f.sort_key):
        text = "".join(source.line(finding.span.start.row).split())
        base = "\0".join((finding.code, finding.message, text))
        count = seen[base] = seen.get(base, -1) + 1
        digest = hashlib.blake2b(f"{base}\0{count}".encode(), digest_size=8).hexdigest()
        out.append(replace(finding, fingerprint=digest))
    return out
