"""Everything preflight looks at, and what it makes of it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from amplint.files import display_path
from amplint.frozen import dataclass
from amplint.preflight.advisories import Advisory, load_advisories
from amplint.preflight.discovery import find_inputs
from amplint.preflight.hardware import Machine, judge_hardware, see_machine
from amplint.preflight.interpreter import inspect_interpreter
from amplint.preflight.judge import asks_hardware, judge_call, judge_on
from amplint.preflight.judge_run import judge_run
from amplint.preflight.packages import Package, installed, pinned
from amplint.preflight.problem import Problem
from amplint.preflight.settings import Settings, SettingsFile, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from packaging.version import Version

    from amplint.preflight.call import Call


@dataclass(slots=True)
class Report:
    """What was seen, what is wrong with it, what could not be seen, and what could not be read at all."""

    machine: Machine
    packages: list[Package]
    problems: list[Problem]
    unseen: list[str]
    errors: list[str] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)


def inspect(paths: Sequence[str], gpus: Sequence[str] = (), python: str | None = None) -> Report:
    """Look at the machine (or the GPUs named), an interpreter's packages, and the files given. Raises UsageError."""
    inputs = find_inputs(paths)
    machine = see_machine(inspect_interpreter(python), gpus)
    pins, unreadable = pinned(inputs.files)
    advisories = load_advisories()
    settings = read_settings(inputs.files, {token for advisory in advisories for token in advisory.tokens})
    of_interest = {name for advisory in advisories for name in advisory.packages_concerned}
    packages = [p for p in (*installed(machine.interpreter.packages), *pins) if p.name in of_interest]
    unseen = [*machine.unseen, *settings.unseen]
    found = list(judge_hardware(machine))
    for call in settings.calls:
        found.extend(judge_call(call))
    found.extend(_against_hardware(settings, machine, unseen))
    runs = settings.runs()
    for run in runs:
        found.extend(judge_run(run))
    found.extend(_advisories(advisories, packages, runs if paths else None, machine, unseen))
    return Report(
        machine,
        packages,
        sorted(dict.fromkeys(found), key=lambda problem: problem.sort_key),
        list(dict.fromkeys(unseen)),
        [*inputs.errors, *settings.errors, *unreadable],
        settings,
    )


def _against_hardware(settings: Settings, machine: Machine, unseen: list[str]) -> Iterator[Problem]:
    """Settings against GPUs; a script that asks the GPU itself is left alone."""
    for file in settings.files:
        for_gpus = file.python is None or file.python.for_gpus
        if not for_gpus or not any(asks_hardware(call) for call in file.calls):
            continue
        query = file.python.hardware_query if file.python is not None else None
        if query is not None:
            unseen.append(
                f"{display_path(file.path)} asks the GPU what it supports (line {query.row}): its settings were not "
                "judged against hardware"
            )
            continue
        for call in file.calls:
            yield from judge_on(call, machine.gpus)


def _advisories(
    advisories: Sequence[Advisory],
    packages: Sequence[Package],
    runs: Sequence[Sequence[SettingsFile]] | None,
    machine: Machine,
    unseen: list[str],
) -> Iterator[Problem]:
    """Known problems of the packages on this machine in these runs, which are None where no files were given."""
    installed_versions = {package.name: package.version for package in packages if package.place is None}
    for advisory in advisories:
        for package in packages:
            if package.name not in advisory.packages_concerned or not advisory.affects(package.version):
                continue
            if not advisory.packages_hold(_beside(package, packages, installed_versions)):
                continue
            gpus = advisory.gpus_concerned(machine.gpus)
            if advisory.gpus and not gpus:
                continue
            if not advisory.needs_settings:
                yield _problem(advisory, package, None, [])
            elif runs is None:
                unseen.append(
                    f"{package.name} {package.version} has a known problem ({advisory.id}) with some scripts: name "
                    "yours to have it looked for"
                )
            else:
                for run in runs:
                    call = advisory.call_concerned(_calls(run)) if _concerns(package, run) else None
                    if call is not None:
                        yield _problem(advisory, package, call, [str(gpu) for gpu in gpus] if advisory.gpus else [])


def _concerns(package: Package, run: Sequence[SettingsFile]) -> bool:
    """Whether a run is of the environment that a package is in: a file's pins are for what lies beside it or below."""
    if package.place is None or run[0].named:
        return True
    return run[0].path.is_relative_to(package.place.path.parent)


def _beside(
    package: Package, packages: Sequence[Package], installed_versions: dict[str, Version]
) -> dict[str, Version]:
    """The versions that a package meets: those pinned in the same file before those installed."""
    if package.place is None:
        return installed_versions
    same = {p.name: p.version for p in packages if p.place is not None and p.place.path == package.place.path}
    return {**installed_versions, **same}


def _calls(run: Sequence[SettingsFile]) -> list[Call]:
    return [call for file in run for call in file.calls]


def _problem(advisory: Advisory, package: Package, call: Call | None, gpus: Sequence[str]) -> Problem:
    on = f" (here {', '.join(dict.fromkeys(gpus))})" if gpus else ""
    pinned_at = ""
    if package.place is not None and call is not None:
        pinned_at = f", pinned in {display_path(package.place.path)}:{package.place.row}"
    return Problem(
        advisory.id,
        advisory.severity,
        f"{package.name} {package.version}{pinned_at}: {advisory.happens}{on}",
        call.place if call is not None else package.place,
        advisory.remedy,
        advisory.sources,
        advisory.evidence,
    )
