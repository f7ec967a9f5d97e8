"""What ``amplint check`` says of exported files, held against the rows."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from places import at_each_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from corpus.rows import Case, Negative

WITHIN = 2
"""A finding this many lines from a labelled line counts as being there."""


@dataclass(frozen=True, slots=True)
class Found:
    """A finding; ``row`` and ``end_row`` are its first and last line, from 1, ``causes`` the lines of its causes in the
    same file."""

    code: str
    row: int
    end_row: int
    severity: str
    certainty: str
    scenarios: tuple[str, ...]
    message: str
    causes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A case and what was found in its file.

    ``hits`` are the fitting findings near a labelled line, ``near`` the other findings there, ``kept`` the fitting
    findings that lie there still after the fix, in a scenario of a hit, ``findings`` all in the file before the fix,
    which has ``length`` lines. ``by_cause`` are fitting findings elsewhere in the file one of whose causes lies near a
    labelled line.
    """

    case: Case
    hits: tuple[Found, ...]
    near: tuple[Found, ...]
    kept: tuple[Found, ...]
    findings: tuple[Found, ...]
    length: int
    by_cause: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedNegative:
    """An idiom and the findings on its lines; ``justified`` are those that its row says are right."""

    negative: Negative
    alarms: tuple[Found, ...]
    justified: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one list: in whole checkouts with default options, and in the same order each file alone with the
    scenarios named. ``lacking`` places could not be had."""

    judged: list[Judged]
    alone: list[Judged]
    negatives: list[JudgedNegative]
    alone_negatives: list[JudgedNegative]
    lacking: int


class CheckError(Exception):
    """``amplint check`` did not do its work."""


def check(files: Iterable[Path], options: Sequence[str] = ()) -> dict[Path, list[Found]]:
    """The findings in each file, from one run of ``amplint check`` without configuration. Raises CheckError."""
    found: dict[Path, list[Found]] = {file: [] for file in files}
    if not found:
        return found
    command = [sys.executable, "-m", "amplint", "check", "--isolated", "--no-cache", "--exit-zero"]
    command += ["--output-format", "json", *options]
    done = subprocess.run([*command, *map(str, found)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CheckError(f"{' '.join(command)} left with status {done.returncode}:\n{done.stderr.strip()}")
    by_name = {str(file): findings for file, findings in found.items()}
    for finding in json.loads(done.stdout):
        for place in at_each_place(finding):
            by_name[place["filename"]].append(_found(place))
    return found


def judge(case: Case, codes: Sequence[str], before: Path, after: Path, found: dict[Path, list[Found]]) -> Judged:
    """Hold the findings in a case's file, before and after its fix, against the case."""
    old, new = _lines(before), _lines(after)
    rows = {row + shift for row in case.lines for shift in range(-WITHIN, WITHIN + 1)}
    near = [finding for finding in found[before] if finding.row in rows]
    hits = tuple(finding for finding in near if finding.code in codes)
    rows_after = moved(rows, old, new) if hits else set()
    scenarios = {scenario for finding in hits for scenario in finding.scenarios}
    there = [finding for finding in found[after] if finding.row in rows_after and scenarios & set(finding.scenarios)]
    return Judged(
        case=case,
        hits=hits,
        near=tuple(finding for finding in near if finding.code not in codes),
        kept=tuple(finding for finding in there if finding.code in codes),
        findings=tuple(found[before]),
        length=len(old),
        by_cause=tuple(f for f in found[before] if f.code in codes and f not in near and rows & set(f.causes)),
    )


def judge_negative(negative: Negative, file: Path, found: dict[Path, list[Found]]) -> JudgedNegative:
    """The findings on the lines of an idiom that is right."""
    rows = set(negative.lines)
    there = [finding for finding in found[file] if rows & set(range(finding.row, finding.end_row + 1))]
    alarms = tuple(finding for finding in there if finding.code not in negative.right)
    return JudgedNegative(negative, alarms, tuple(finding for finding in there if finding.code in negative.right))


def moved(rows: Iterable[int], old: Sequence[str], new: Sequence[str]) -> set[int]:
    """Where rows (from 1) of a text lie after it was changed: an unchanged line where it went, a replaced one all over
    its replacement, a deleted one nowhere. Lines inserted between two of the rows belong to them."""
    wanted = set(rows)
    places: set[int] = set()
    for kind, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            places.update(row + new_start - start for row in wanted & set(range(start + 1, end + 1)))
        elif kind == "insert":
            if {start, start + 1} <= wanted:
                places.update(range(new_start + 1, new_end + 1))
        elif wanted & set(range(start + 1, end + 1)):
            places.update(range(new_start + 1, new_end + 1))
    return places


def _found(finding: dict[str, Any]) -> Found:
    end = finding["end_location"]
    return Found(
        code=finding["code"],
        row=finding["location"]["row"],
        end_row=end["row"] - (end["column"] == 1),
        severity=finding["severity"],
        certainty=finding["certainty"],
        scenarios=tuple(finding["scenarios"]),
        message=finding["message"],
        causes=tuple(c["location"]["row"] for c in finding["causes"] if c["filename"] == finding["filename"]),
    )


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()
