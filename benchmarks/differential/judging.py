"""Which crashes have a finding, and which findings lie on lines that ran clean."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from places import at_each_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from differential.outcome import Crash, Outcome

DTYPES = re.compile(r"(?i)dtype|scalar type|half|float|double|int32|int64|long|complex|type .* and .* type|precision")
"""What an error that is about dtypes mentions; sizes that a rounded number made others are not."""
NEAR = 2
"""Rows around a finding within which a crash is its."""


@dataclass(frozen=True)
class Finding:
    """A finding of ``amplint check``, its file relative to the package."""

    file: str
    first: int
    last: int
    code: str
    severity: str
    certainty: str
    scenarios: tuple[str, ...]
    message: str
    causes: tuple[tuple[str, int], ...] = ()
    """Rows that decided it, in files of the package; those of constructors and of class bodies are left out."""


@dataclass(frozen=True)
class Failure:
    """Crashes of models at one place with one error: ``models`` by name, ``scenarios`` and ``modes`` of all."""

    library: str
    place: tuple[str, int] | None
    error: str
    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    modes: tuple[str, ...]
    found: tuple[str, ...]
    """Codes of the findings there, in any of these scenarios."""


def findings(root: Path, files: Iterable[str], device: str, scenarios: Iterable[str] = ()) -> list[Finding]:
    """What ``amplint check`` says of files of a package, with default settings, or of each scenario by itself."""
    paths = [str(root / file) for file in sorted(files)]
    command = [sys.executable, "-m", "amplint", "check", "--isolated"]
    options = ["--device", device, "--exit-zero", "--output-format", "json"]
    found: list[Finding] = []
    for asked in [["--scenario", scenario] for scenario in scenarios] or [[]]:
        done = subprocess.run([*command, *options, *asked, *paths], capture_output=True, text=True, check=True)
        found += [_finding(place, root) for one in json.loads(done.stdout) for place in at_each_place(one)]
    return found


def _finding(one: dict[str, Any], root: Path) -> Finding:
    return Finding(
        str(Path(one["filename"]).relative_to(root)),
        one["location"]["row"],
        one["end_location"]["row"],
        one["code"],
        one["severity"],
        one["certainty"],
        tuple(one["scenarios"]),
        one["message"],
        tuple(
            (str(Path(cause["filename"]).relative_to(root)), cause["location"]["row"])
            for cause in one["causes"]
            if Path(cause["filename"]).is_relative_to(root)
            and _runs_with_forward(cause["filename"], cause["location"]["row"])
        ),
    )


def _runs_with_forward(file: str, row: int) -> bool:
    """Whether a row stands in a function that no constructor of the file leads to, by the names that they call."""
    functions = _functions(file)
    reached, pending = set[str](), ["__init__"]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += [called for node in functions if node.name == name for called in _called(node)]
    inner = [node for node in functions if node.body[0].lineno <= row <= (node.end_lineno or 0)]
    return bool(inner) and not any(node.name in reached for node in inner)


@cache
def _functions(file: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(Path(file).read_bytes())
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _called(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return [getattr(callee, "attr", getattr(callee, "id", "")) for callee in calls]


class Judgement:
    """One library's outcomes beside its findings."""

    def __init__(self, library: str, outcomes: Iterable[Outcome], found: Iterable[Finding]) -> None:
        self.library = library
        self.outcomes = [one for one in outcomes if one.error is None]
        self._by_file: dict[str, list[Finding]] = {}
        for finding in found:
            self._by_file.setdefault(finding.file, []).append(finding)

    @cached_property
    def failures(self) -> list[Failure]:
        """Crashes that are the program's, by the place they were raised at."""
        groups: dict[tuple[Any, str], list[tuple[str, Crash]]] = {}
        for outcome in self.outcomes:
            for crash in outcome.crashes:
                if not crash.gap and DTYPES.search(crash.error):
                    place = crash.frames[-1] if crash.frames else None
                    groups.setdefault((place, crash.error), []).append((outcome.model, crash))
        return [self._failure(place, error, crashes) for (place, error), crashes in groups.items()]

    @cached_property
    def others(self) -> list[tuple[str, Crash]]:
        """Crashes that are not about dtypes, each with the model: numbers that came out otherwise lead there."""
        crashes = [(outcome.model, crash) for outcome in self.outcomes for crash in outcome.crashes]
        return [(model, crash) for model, crash in crashes if not crash.gap and not DTYPES.search(crash.error)]

    def _failure(self, place: tuple[str, int] | None, error: str, crashes: list[tuple[str, Crash]]) -> Failure:
        scenarios = tuple(sorted({crash.scenario for _, crash in crashes}))
        codes = {f.code for _, crash in crashes for f in self._near(crash)}
        return Failure(
            self.library,
            place,
            error,
            tuple(sorted({model for model, _ in crashes})),
            scenarios,
            tuple(sorted({crash.mode for _, crash in crashes})),
            tuple(sorted(codes)),
        )

    def _near(self, crash: Crash) -> Iterator[Finding]:
        """Findings at the line that raised, in the scenario of the crash; or in a file on the way to it, with that line
        as a cause: what another file was handed is told where it was handed over."""
        for file, row in crash.frames[-1:]:
            for finding in self._by_file.get(file, ()):
                if crash.scenario in finding.scenarios and finding.first - NEAR <= row <= finding.last + NEAR:
                    yield finding
            for way in dict.fromkeys(passed for passed, _ in crash.frames if passed != file):
                for finding in self._by_file.get(way, ()):
                    led = any(cause == file and abs(at - row) <= NEAR for cause, at in finding.causes)
                    if led and crash.scenario in finding.scenarios:
                        yield finding

    @property
    def refuted(self) -> Iterator[tuple[Finding, str, tuple[str, ...]]]:
        """Proven errors with a scenario that they name, and the models in which their line ran clean in it, together
        with the lines that they give as causes: what another function hands over says nothing of a run without it."""
        for finding in (f for found in self._by_file.values() for f in found):
            if finding.severity != "error" or finding.certainty != "proven":
                continue
            for scenario in finding.scenarios:
                models = [o.model for o in self.outcomes if self._ran_clean(o, finding, scenario)]
                if models:
                    yield finding, scenario, tuple(models)

    @staticmethod
    def _ran_clean(outcome: Outcome, finding: Finding, scenario: str) -> bool:
        clean = outcome.clean.get(scenario, {})
        if any(row not in clean.get(file, ()) for file, row in finding.causes):
            return False
        return any(finding.first <= row <= finding.last for row in clean.get(finding.file, ()))
