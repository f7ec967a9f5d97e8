"""Checking a notebook: as the Python program that its cells make, told in cells, and written back into them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.finding import FileResult, Finding, with_fingerprints
from amplint.notebook.document import Notebook, NotebookError
from amplint.notebook.excerpts import as_source
from amplint.notebook.layout import Layout
from amplint.notebook.placing import Placing
from amplint.notebook.program import Program
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable


def check_notebook(
    source: Source,
    check: Callable[[Source], FileResult],
    refuse: Callable[[Source, SourceError], list[Finding]],
    narrow: Callable[[list[Finding]], tuple[list[Finding], list[Finding]]],
) -> FileResult:
    """What ``check`` finds in the program of a notebook's cells, and what ``refuse`` says of a cell that is no Python,
    parted by ``narrow`` into what is told and what is known.

    Positions are within cells; the bytes before and after a fix are those of the notebook.
    """
    try:
        notebook = Notebook.read(source.data)
    except NotebookError as error:
        return FileResult(source.path, error=f"cannot check {source.path}: {error}")
    if notebook.language and "python" not in notebook.language.lower():
        return FileResult(source.path, passed_over=f"with a kernel for {notebook.language}")
    program = Program.of(source.path, notebook)
    result = check(program.source)
    fixed = program.source if result.after is None else Source(source.path, result.after)
    sources = program.sources(fixed)
    layout = Layout.of(fixed)
    findings, known = narrow(_refused(program, refuse))
    if layout is not None and layout.numbers:
        texts = {cell.number: sources.get(cell.number, cell.text) for cell in notebook.cells}
        placing = Placing(source.path, layout, texts)
        findings += [placing.finding(finding) for finding in result.findings]
    findings.sort(key=lambda finding: finding.sort_key)
    result = replace(result, findings=tuple(findings), known=(*known, *result.known))
    if not sources:
        return replace(result, before=b"", after=None, fixed=0)
    return replace(result, before=source.data, after=notebook.with_sources(sources))


def _refused(program: Program, refuse: Callable[[Source, SourceError], list[Finding]]) -> list[Finding]:
    """The findings that stand for cells that are no Python."""
    findings: list[Finding] = []
    for cell, error in program.refused:
        text = as_source(program.source.path, cell)
        findings += [replace(finding, cell=cell.number) for finding in refuse(text, error)]
    return with_fingerprints(findings, Source(program.source.path, b""))
