"""From a text to its answer: what it says, what follows from it, and the findings where its frames point."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.engine import Options, check_file
from amplint.explain.catalogue import Family, Recognised, Remedy, families, recognise
from amplint.explain.clues import clues
from amplint.explain.frames import Frame, parse_frames
from amplint.explain.locate import Line, Locator, Place
from amplint.explain.spelling import COMPLEX, FLOATING, LOW
from amplint.finding import Severity
from amplint.frozen import dataclass
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Finding


MAX_FILES = 12
"""Files of a traceback that are checked, from the innermost outwards."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One recognised text in words. ``says`` is one line with the dtypes in it; ``why`` are paragraphs, what is
    particular to this text first; ``remedies`` and ``codes`` are the likeliest first."""

    match: Recognised
    family: Family
    says: str
    why: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Located:
    """A finding that the traceback leads to. ``how``: ``line`` (it lies there), ``cause`` (the line is among what
    decided its dtypes) or ``function`` (it lies elsewhere in the same function). ``shown`` is the same finding as it
    reads in the scenarios of the dtypes in the message."""

    finding: Finding
    place: Place
    how: str
    shown: Finding


@dataclass(frozen=True, slots=True)
class Answer:
    """``frames`` are those of the traceback, outermost first; ``places`` those of the user's that are files here,
    innermost first; ``located`` the findings, best first; ``target`` what ``verify`` could run, ``FILE::Class``."""

    matches: tuple[Explained, ...]
    frames: tuple[Frame, ...]
    places: tuple[Place, ...]
    located: tuple[Located, ...]
    target: tuple[Path, str] | None


def answer(text: str, options: Options) -> Answer:
    """Explain a text, looking at the files that its frames name from the current folder. No file is changed or run."""
    matches = recognise(text)
    frames = parse_frames(text, near=matches[0].text if matches else "")
    explained = tuple(
        _explain(match, frames if position == 0 else (), options) for position, match in enumerate(matches)
    )
    places = tuple(_places(frames))
    located = tuple(_located(places, explained[0], options)) if explained else ()
    return Answer(explained, frames, places, located, _target(located, places))


# ---- what the text says -------------------------------------------------------------------------------------------


def _explain(match: Recognised, frames: Sequence[Frame], options: Options) -> Explained:
    family = families()[match.family]
    hints = clues(frames, match.family) if match.kind == "dtype" else []
    hinted = [code for clue in hints for code in clue.codes]
    why = [*(clue.says for clue in hints), *_narrowed(family, dict(match.dtypes)), family.meaning]
    remedies = sorted(family.remedies, key=lambda remedy: (remedy.rule not in hinted, remedy.rule is not None))
    known = {rule.code for rule in options.rules}
    codes = tuple(code for code in dict.fromkeys((*hinted, *match.codes)) if code in known)
    return Explained(match, family, _says(family, match), tuple(why), tuple(remedies), codes)


def _says(family: Family, match: Recognised) -> str:
    """The family's sentence with the dtypes of the message, or its title where the message names none."""
    text = family.says
    for name, value in (*match.dtypes, *match.values):
        text = text.replace("{" + name + "}", value)
    return family.title if "{" in text else text


def _narrowed(family: Family, dtypes: dict[str, str]) -> Iterator[str]:
    for narrowing in family.narrowing:
        if all(role in dtypes and _of_class(dtypes[role], kind) for role, kind in narrowing.when):
            yield narrowing.says


def _of_class(dtype: str, kind: str) -> bool:
    if kind == "low":
        return dtype in LOW
    if kind == "integer":
        return dtype not in FLOATING | COMPLEX
    return dtype == kind


# ---- where it happened --------------------------------------------------------------------------------------------


def _places(frames: Sequence[Frame]) -> Iterator[Place]:
    """The user's frames whose files are here, innermost first, each line once."""
    locator = Locator(Path.cwd())
    seen = set()
    for frame in reversed(frames):
        place = None if frame.of_torch or frame.of_python else locator.locate(frame)
        if place is not None and (place.path, place.row) not in seen:
            seen.add((place.path, place.row))
            yield place


def _located(places: Sequence[Place], explained: Explained, options: Options) -> list[Located]:
    """Findings on the innermost line of the traceback that has any which can be the failure's; without one, those in
    the functions; without one, errors on the lines whatever their code."""
    checked: dict[Path, tuple[Finding, ...]] = {}
    options = replace(options, each_place=True)
    for relevant, near in ((True, False), (True, True), (False, False)):
        for place in places:
            if place.path not in checked:
                checked[place.path] = check_file(place.path, options).findings if len(checked) < MAX_FILES else ()
            wanted = [finding for finding in checked[place.path] if _matters(finding, explained, relevant)]
            here = list(_near(place, wanted) if near else _on_line(place, wanted))
            if here:
                return _in_its_scenarios(
                    sorted(here, key=lambda located: _order(located, explained)), explained, options
                )
    return []


def _in_its_scenarios(located: list[Located], explained: Explained, options: Options) -> list[Located]:
    """With the first finding as it reads in the scenarios of the message's low precision: with the message's dtypes."""
    low = {dtype for _, dtype in explained.match.dtypes} & LOW
    scenarios = tuple(s for s in options.judged if len(low) == 1 and (s.autocast or s.parameters) in low)
    if not scenarios:
        return located
    first = located[0]
    for finding in check_file(first.finding.filename, replace(options, scenarios=scenarios)).findings:
        if (finding.code, finding.span) == (first.finding.code, first.finding.span):
            return [replace(first, shown=finding), *located[1:]]
    return located


def _matters(finding: Finding, explained: Explained, relevant: bool) -> bool:
    if relevant:
        return finding.code in explained.codes
    return finding.severity is Severity.ERROR and explained.match.kind != "scaler"


def _order(located: Located, explained: Explained) -> tuple[bool, bool, int, int]:
    """On the line before a cause, errors before warnings, the likelier rule first, then the nearer one."""
    codes = explained.codes
    finding = located.finding
    return (
        located.how == "cause",
        finding.severity is not Severity.ERROR,
        codes.index(finding.code) if finding.code in codes else len(codes),
        abs(finding.span.start.row - located.place.row),
    )


def _on_line(place: Place, findings: Sequence[Finding]) -> Iterator[Located]:
    if place.line is Line.GONE:
        return
    for finding in findings:
        if finding.span.start.row <= place.row <= finding.span.end.row:
            yield Located(finding, place, "line", finding)
        elif any(
            cause.filename == place.path and cause.span.start.row <= place.row <= cause.span.end.row
            for cause in finding.causes
        ):
            yield Located(finding, place, "cause", finding)


def _near(place: Place, findings: Sequence[Finding]) -> Iterator[Located]:
    rows = _function_rows(place)
    for finding in findings:
        if rows is not None and rows[0] <= finding.span.start.row <= rows[1]:
            yield Located(finding, place, "function", finding)


def _function_rows(place: Place) -> tuple[int, int] | None:
    """First and last row of the innermost function around a line; by its name where the line is gone from the file."""
    definitions = [
        node for node in ast.walk(_tree(place.path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    if place.line is Line.GONE:
        name = (place.frame.function or "").rpartition(".")[2]
        around = [node for node in definitions if node.name == name]
        around = around if len(around) == 1 else []
    else:
        around = [node for node in definitions if node.lineno <= place.row <= (node.end_lineno or node.lineno)]
    node = max(around, key=lambda node: node.lineno, default=None)
    return (node.lineno, node.end_lineno or node.lineno) if node is not None else None


def _target(located: Sequence[Located], places: Sequence[Place]) -> tuple[Path, str] | None:
    """The class of the best finding's line, or of the innermost line that is in one."""
    for path, row in (*((one.finding.filename, one.finding.span.start.row) for one in located[:1]), *_rows(places)):
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and node.lineno <= row <= (node.end_lineno or row):
                return path, node.name
    return None


def _rows(places: Sequence[Place]) -> Iterator[tuple[Path, int]]:
    return ((place.path, place.row) for place in places if place.line is not Line.GONE)


def _tree(path: Path) -> ast.Module:
    try:
        return Source(path, path.read_bytes()).tree
    except (OSError, SourceError):
        return ast.Module([], [])
