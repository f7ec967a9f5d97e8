"""Which crashes have a finding, and which findings lie on lines that ran clean."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from differential.outcome import Crash, Outcome

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


def findings(root: Path, files: Iterable[str], device: str) -> list[Finding]:
    """What ``amplint check`` says of files of a package, with default settings."""
    paths = [str(root / file) for file in sorted(files)]
    command = [sys.executable, "-m", "amplint", "check", "--isolated"]
    options = ["--device", device, "--exit-zero", "--output-format", "json"]
    done = subprocess.run([*command, *options, *paths], capture_output=True, text=True, check=True)
    return [_finding(one, root) for one in json.loads(done.stdout)]


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
    )


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
                if not crash.gap:
                    place = crash.frames[-1] if crash.frames else None
                    groups.setdefault((place, crash.error), []).append((outcome.model, crash))
        return [self._failure(place, error, crashes) for (place, error), crashes in groups.items()]

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
        """Findings at the line that raised, in the scenario of the crash."""
        for file, row in crash.frames[-1:]:
            for finding in self._by_file.get(file, ()):
                if crash.scenario in finding.scenarios and finding.first - NEAR <= row <= finding.last + NEAR:
                    yield finding

    @property
    def refuted(self) -> Iterator[tuple[Finding, str, tuple[str, ...]]]:
        """Proven errors with a scenario that they name, and the models in which their line ran clean in it."""
        for finding in (f for found in self._by_file.values() for f in found):
            if finding.severity != "error" or finding.certainty != "proven":
                continue
            for scenario in finding.scenarios:
                models = [o.model for o in self.outcomes if self._ran_clean(o, finding, scenario)]
                if models:
                    yield finding, scenario, tuple(models)

    @staticmethod
    def _ran_clean(outcome: Outcome, finding: Finding, scenario: str) -> bool:
        rows = outcome.clean.get(scenario, {}).get(finding.file, ())
        return any(finding.first <= row <= finding.last for row in rows)
