"""A finding in words, as several formats give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.files import place_name
from amplint.finding import Applicability
from amplint.report.columns import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amplint.finding import Cause, Finding, Fix, Place
    from amplint.report import Context
    from amplint.source import Location

NOT_COUNTED = "Ran in every scenario named and did not fail; not counted"
"""What is said of findings that a run refutes."""
SAME_CAUSE = "fails for the same cause"
"""What is said of a finding's other places."""


def claim(finding: Finding, context: Context) -> str:
    """What it says, where that holds, and what came of running it: ``message [scenarios] (verdict)``."""
    scenarios = f" [{', '.join(finding.scenarios)}]" if finding.scenarios else ""
    proof = context.proof(finding)
    verdict = f" ({proof.verdict.value})" if proof is not None else ""
    return printable(f"{finding.message}{scenarios}{verdict}")


def position(at: Finding | Cause | Place) -> str:
    """Row and column, and the cell in a notebook."""
    cell = f"cell {at.cell}:" if at.cell is not None else ""
    return f"{cell}{at.span.start.row}:{at.span.start.column}"


def in_cell(at: Finding | Cause | Place) -> str:
    """The position in a notebook, ahead of what is said of it; empty in other files."""
    return f"{position(at)}: " if at.cell is not None else ""


def place(path: Path, cell: int | None, location: Location) -> str:
    """A place for people: the file relative where it lies below the current folder, all in one line."""
    return f"{printable(place_name(path, cell))}:{location.row}:{location.column}"


def help_text(finding: Finding, fix: Fix, context: Context) -> str:
    """What the fix does, and how it is applied."""
    options = "--fix" if context.takes_fix(finding) else "--fix --unsafe-fixes"
    how = "shown only" if fix.applicability is Applicability.DISPLAY else f"{fix.applicability.value} fix: {options}"
    return printable(f"{fix.message} ({how})")


def account(finding: Finding, context: Context) -> Iterator[str]:
    """The claim, each place that decided it, the other places, and what mends it: a line each."""
    yield in_cell(finding) + claim(finding, context)
    for cause in finding.causes:
        yield f"{place(cause.filename, cause.cell, cause.span.start)}: {printable(cause.message)}"
    for other in finding.also:
        yield f"{place(other.filename, other.cell, other.span.start)}: {SAME_CAUSE}"
    if finding.fix is not None:
        yield f"help: {help_text(finding, finding.fix, context)}"
