"""Reports: findings as text for people and as data for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING

from amplint.finding import Applicability
from amplint.frozen import dataclass
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.finding import Finding
    from amplint.rule_base import Announced
    from amplint.verify.proof import Proof

FORMATS = ("full", "concise", "grouped", "json", "sarif", "github", "gitlab", "junit", "rdjson")

_SILENT = ("full", "concise", "grouped", "github")
"""Those that say nothing where nothing is found."""

Piece = tuple[str, str]
"""Text and its rich style; an empty style is plain."""

Line = Sequence[Piece]


@dataclass(slots=True)
class Context:
    """What reports may look up: rules by code, and sources by path (read from disk when first asked for).

    ``pedantic``: the text for people names the doubts too. ``unsafe_in``: files whose configuration lets ``--fix``
    apply unsafe fixes. ``proofs``: what runs say about findings, by file and fingerprint; None where nothing was to be
    run. ``columns`` is the width of the terminal, at which text is wrapped; None where it is not. ``checked`` are all
    files of the run, and ``errors`` what went wrong in it, a line each.
    """

    rules: Mapping[str, Announced]
    sources: dict[Path, Source] = field(default_factory=dict)
    cells: dict[Path, dict[int, Source]] = field(default_factory=dict)
    pedantic: bool = False
    unsafe_in: frozenset[Path] = frozenset()
    proofs: dict[tuple[Path, str], Proof] | None = None
    columns: int | None = None
    checked: Sequence[Path] = ()
    errors: list[str] = field(default_factory=list)

    def link(self, finding: Finding) -> str:
        """What makes a style lead to the page of the finding's rule; empty where it has none."""
        rule = self.rules.get(finding.code)
        return f" link {rule.url}" if rule is not None and rule.url and not set(rule.url) & set(" \t\r\n") else ""

    def proof(self, finding: Finding) -> Proof | None:
        """What runs say about a finding."""
        return self.proofs.get((finding.filename, finding.fingerprint)) if self.proofs is not None else None

    def refuted(self, finding: Finding) -> bool:
        """Whether a run shows that what a finding claims does not happen there."""
        proof = self.proof(finding)
        return proof is not None and proof.refuted

    def takes_fix(self, finding: Finding) -> bool:
        """Whether ``--fix`` alone applies the fix of a finding."""
        level = finding.fix.applicability if finding.fix is not None else None
        return level is Applicability.SAFE or (level is Applicability.UNSAFE and finding.filename in self.unsafe_in)

    def source(self, path: Path, cell: int | None = None) -> Source:
        """The source of a file, or of one cell of a notebook; an empty one where it cannot be read, or not as text."""
        if cell is not None:
            if path not in self.cells:
                from amplint.notebook.excerpts import cells_of

                self.cells[path] = cells_of(path, self.source(path).data)
            return self.cells[path].get(cell) or Source(path, b"")
        try:
            source = (self.sources.get(path) or Source(path, path.read_bytes())).or_empty()
        except OSError:
            source = Source(path, b"")
        self.sources[path] = source
        return source


def render(output_format: str, findings: Sequence[Finding], context: Context) -> list[Line]:
    """The report in one of :data:`FORMATS`, line by line without line endings."""
    if not findings and output_format in _SILENT:
        return []
    module = import_module(f"amplint.report.{output_format}")
    function: Callable[[Sequence[Finding], Context], Iterable[Line]] = module.render
    return list(function(findings, context))


def plain(lines: Iterable[Line]) -> str:
    """The lines as text without colour."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)
