"""The report of preflight, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplint.files import display_path
from amplint.finding import Severity
from amplint.preflight.gpus import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.preflight.gpus import Gpu
    from amplint.preflight.inspection import Report
    from amplint.preflight.packages import Package
    from amplint.preflight.problem import Place, Problem
    from amplint.report import Line

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def render(report: Report) -> Iterator[Line]:
    """What was seen, the problems with their remedies, and what could not be seen, line by line."""
    rows = list(_seen(report))
    width = max(len(key) for key, _ in rows)
    for key, text in rows:
        yield [(f"{key:<{width}}", "bold"), (f"  {text}", "")]
    for problem in report.problems:
        yield []
        yield from _problem(problem)
    if report.unseen:
        yield []
        yield [("not seen", "bold")]
        for line in report.unseen:
            yield [(f"  {line}", "")]


def _seen(report: Report) -> Iterator[tuple[str, str]]:
    machine = report.machine
    yield "python", f"{machine.interpreter.version} ({machine.interpreter.path})"
    torch = machine.torch
    if torch is not None:
        build = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "CPU build"
        yield "torch", f"{torch.version} ({build})"
    if machine.driver is not None:
        yield "driver", machine.driver
    for key, value in machine.environment.items():
        yield key, value or "(empty)"
    for gpu in machine.gpus:
        number = "" if gpu.index is None else f" {gpu.index}"
        yield f"gpu{number}", f"{gpu}{_abilities(gpu)} [{machine.source}]"
    for name in torch.accelerators if torch is not None else ():
        yield "accelerator", name
    for package in report.packages:
        where = "" if package.place is None else f" ({display_path(package.place.path)}:{package.place.row})"
        if package.name != "torch" or package.place is not None or torch is None:
            yield package.name, f"{package.version}{where}"
    read = [file for file in report.settings.files if any(file.calls)]
    if read:
        yield "settings", ", ".join(display_path(file.path) for file in read)


def _abilities(gpu: Gpu) -> str:
    if gpu.capability is None:
        return ""
    words = [
        f"bf16 {gpu.bf16}",
        "fp16 tensor cores" if gpu.fp16_tensor_cores else "no fp16 tensor cores",
        "fp8" if gpu.fp8 else "no fp8",
    ]
    return f": {', '.join(words)}"


def _problem(problem: Problem) -> Iterator[Line]:
    colour = _COLOURS[problem.severity]
    yield [(f"{problem.severity.value}[{problem.id}]", f"bold {colour}"), (f": {problem.message}", "bold")]
    if problem.place is not None:
        place = problem.place
        yield [("  --> ", "blue"), (f"{display_path(place.path)}:{place.row}:{place.column}", "")]
    yield [("  = ", "blue"), ("help: ", "bold"), (problem.remedy, "")]
    yield [("  = ", "blue"), (f"{problem.evidence.value}: ", "bold"), (" ".join(problem.sources), "")]


def as_json(report: Report) -> dict[str, Any]:
    """The document: machine, packages, problems, unseen."""
    return {
        "machine": _machine(report),
        "packages": [_package(package) for package in report.packages],
        "problems": [_problem_json(problem) for problem in report.problems],
        "unseen": report.unseen,
    }


def _machine(report: Report) -> dict[str, Any]:
    machine, torch = report.machine, report.machine.torch
    return {
        "python": machine.interpreter.path,
        "python_version": machine.interpreter.version,
        "torch": None
        if torch is None
        else {"version": torch.version, "cuda": torch.cuda, "hip": torch.hip, "arch_list": list(torch.arch_list)},
        "driver": machine.driver,
        "environment": machine.environment,
        "source": machine.source,
        "gpus": [_gpu(gpu) for gpu in machine.gpus],
        "accelerators": list(torch.accelerators) if torch is not None else [],
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    data = {"index": gpu.index, "name": gpu.name, "capability": gpu.capability and dotted(gpu.capability)}
    return data | {name: getattr(gpu, name) for name in ("architecture", "bf16", "fp16_tensor_cores", "fp8")}


def _package(package: Package) -> dict[str, Any]:
    return {"name": package.name, "version": str(package.version), "location": _location(package.place)}


def _problem_json(problem: Problem) -> dict[str, Any]:
    return {
        "id": problem.id,
        "severity": problem.severity.value,
        "message": problem.message,
        "location": _location(problem.place),
        "remedy": problem.remedy,
        "source": list(problem.sources),
        "evidence": problem.evidence.value,
    }


def _location(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else {"filename": str(place.path), "row": place.row, "column": place.column}
