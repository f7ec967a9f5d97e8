"""Which cases can be run here, and what came of those: a child process for each package and cast policy."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING

from children import answers
from differential.judging import findings

from found.outcome import Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from differential.judging import Finding

    from found.case import Case

CHILD = "found.run_child"


def run(cases: Mapping[str, Case], folder: Path, seconds: float) -> Iterator[Result]:
    """What came of each case. One is shown where its run shows it and amplint reports the line with its code."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, case in cases.items():
        found = _installed(case.package)
        if found == case.release:
            groups.setdefault((case.package, case.device), []).append(name)
        else:
            has = f"{case.package} {found} is installed" if found else f"{case.package} is not installed"
            yield Result(name, "not run", f"{has}: pip install {case.requirement}")
    reported = _reported({name: cases[name] for names in groups.values() for name in names})
    for (_, device), names in groups.items():
        for result in _one_group(folder, device, names, seconds):
            complaint = _complaint(cases[result.name], reported[result.name])
            if result.status == "shown" and complaint:
                yield Result(result.name, "not shown", complaint)
            else:
                yield result


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _root(package: str) -> Path:
    return Path(str(importlib.metadata.distribution(package).locate_file("")))


def _reported(cases: Mapping[str, Case]) -> dict[str, list[Finding]]:
    """The findings at each case's line, in its scenario."""
    files: dict[tuple[Path, str, str], set[str]] = {}
    checks = {name: (_root(case.package), case.device, case.scenario) for name, case in cases.items()}
    for name, case in cases.items():
        files.setdefault(checks[name], set()).add(case.path)
    found = {
        (root, device, scenario): findings(root, paths, device, [scenario])
        for (root, device, scenario), paths in files.items()
    }
    return {
        name: [
            one
            for one in found[checks[name]]
            if one.file == case.path and one.first <= case.line <= one.last and case.scenario in one.scenarios
        ]
        for name, case in cases.items()
    }


def _complaint(case: Case, reported: list[Finding]) -> str | None:
    """What amplint says other than the case says it does."""
    codes = sorted({one.code for one in reported})
    if case.code is None:
        return f"marked as not reported, but amplint reports {', '.join(codes)}" if codes else None
    if case.code in codes:
        return None
    return (
        f"amplint does not report {case.code} at {case.place} in {case.scenario}, but {', '.join(codes) or 'nothing'}"
    )


def _one_group(folder: Path, device: str, names: list[str], seconds: float) -> Iterator[Result]:
    for answer in answers(CHILD, [str(folder), device], names, seconds):
        if answer.why:
            yield Result(answer.name, "not shown", answer.why)
        else:
            yield Result.from_json(json.loads(answer.line))
