"""Results of files as JSON holds them, and back."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.finding import (
    Applicability,
    Cause,
    Certainty,
    Doubt,
    Edit,
    Effect,
    FileResult,
    Finding,
    Fix,
    HeldDoubt,
    Place,
    Severity,
)
from amplint.source import Location, Span

if TYPE_CHECKING:
    from collections.abc import Callable


def record_of(result: FileResult) -> list[Any]:
    """What :func:`result_of` makes the same result of; one that failed, or was fixed, cannot be kept."""
    return [
        [_plain(finding) for finding in result.findings],
        list(result.notes),
        sorted(map(str, result.followed)),
        result.passed_over,
    ]


def result_of(path: Path, record: list[Any]) -> FileResult:
    """Raises ValueError, TypeError, KeyError or IndexError for what is no record."""
    findings, notes, followed, passed_over = record
    return FileResult(
        path,
        tuple(map(_finding, findings)),
        notes=tuple(notes),
        followed=frozenset(map(_path, followed)),
        passed_over=passed_over,
    )


def _plain(value: Any) -> Any:
    """Lists in the place of data classes and tuples, strings in that of paths and members of enumerations."""
    if isinstance(value, (Severity, Certainty, Applicability, Effect)):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, (Finding, Fix, Edit, Cause, Place, HeldDoubt, Doubt, Span, Location)):
        return [_plain(getattr(value, one.name)) for one in fields(value)]
    return value


def _finding(row: list[Any]) -> Finding:
    code, name, message, severity, certainty, filename, span, scenarios, device = row[:9]
    causes, fix, doubts, also, culprit, mend, cell, fingerprint = row[9:]
    return Finding(
        code,
        name,
        message,
        Severity(severity),
        Certainty(certainty),
        _path(filename),
        _span(span),
        tuple(scenarios),
        device,
        tuple(Cause(_path(file), _span(at), text, cell) for file, at, text, cell in causes),
        _or_none(_fix, fix),
        tuple(map(_doubt, doubts)),
        tuple(map(_place, also)),
        _or_none(_place, culprit),
        mend,
        cell,
        fingerprint,
    )


@lru_cache(maxsize=4096)
def _path(text: str) -> Path:
    return Path(text)


def _fix(row: list[Any]) -> Fix:
    applicability, message, edits = row
    made = tuple(Edit(_span(at), content, cell) for at, content, cell in edits)
    return Fix(Applicability(applicability), message, made)


def _doubt(row: list[Any]) -> HeldDoubt:
    (name, codes, effect, message), span, cell = row
    return HeldDoubt(Doubt(name, tuple(codes), Effect(effect), message), _or_none(_span, span), cell)


def _place(row: list[Any]) -> Place:
    file, span, cell = row
    return Place(_path(file), _span(span), cell)


def _span(row: list[list[int]]) -> Span:
    (row_from, column_from), (row_to, column_to) = row
    return Span(Location(row_from, column_from), Location(row_to, column_to))


def _or_none(make: Callable[[Any], Any], row: Any) -> Any:
    return None if row is None else make(row)
