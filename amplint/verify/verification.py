"""From targets to rows: one job for each target and cast policy, and a second one on the fixed code if asked."""

from __future__ import annotations

import tempfile
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.engine import Options, check_file
from amplint.finding import Applicability
from amplint.frozen import dataclass
from amplint.source import Source
from amplint.verify.alone import HOW, run_alone
from amplint.verify.job import (
    BASE,
    CLEAN,
    CONFIRMING,
    CPU_GAP,
    HARDWARE,
    MODES,
    NO_REFERENCE,
    OTHER,
    Cell,
    Job,
    Outcome,
)
from amplint.verify.parent import Report, run_job
from amplint.verify.targets import EXAMPLE, Outline, Target, claims_of
from amplint.verify.timeline import TimelineRun
from amplint.verify.verdict import FixEffect, Row, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from amplint.finding import Finding

UNCHANGED = 1e-5
"""Relative difference of float32 results up to which a cure counts as changing nothing: another order of sums."""

OLD_CAPABILITY = (7, 0)
"""The GPU imagined when a finding lies on a branch that the default one does not take."""

NO_WHOLE = "it lies outside every class and function"

_PLAIN = {
    CLEAN: Verdict.CLEAN,
    **dict.fromkeys(CONFIRMING, Verdict.CONFIRMED),
    **dict.fromkeys((CPU_GAP, HARDWARE), Verdict.NEEDS_GPU),
    **dict.fromkeys((OTHER, NO_REFERENCE), Verdict.NOT_RUNNABLE),
}


@dataclass(frozen=True)
class Settings:
    """How to verify. ``factories`` maps a class's qualified name, or ``FILE.py::Class`` with a path relative to
    ``root``, to the function that builds it. ``memory`` is in bytes, ``timeout`` in seconds, both for each target.
    ``given`` are command-line options that a command which reproduces a row has to repeat."""

    options: Options
    run_on: str
    root: Path
    factories: Mapping[str, str] = field(default_factory=dict)
    fix_check: bool = False
    trace: bool = False
    timeout: float = 120.0
    memory: int = 8 << 30
    given: tuple[str, ...] = ()
    run_in: tuple[str, ...] | None = None
    """The scenarios to run in, by name; None for those that are judged."""

    @property
    def scenarios(self) -> tuple[str, ...]:
        return tuple(scenario.name for scenario in self.options.judged) if self.run_in is None else self.run_in


@dataclass(frozen=True)
class Verified:
    """All rows of one target, its timelines where they were asked for, and the name of the class that was built."""

    rows: tuple[Row, ...]
    timelines: tuple[TimelineRun, ...] = ()
    built: str | None = None


def verify_target(
    target: Target, outline: Outline, settings: Settings, progress: Callable[[str], None] | None = None
) -> Verified:
    """Run a target under every scenario, on the policies its findings are about."""
    asked = settings.options.device
    by_device: dict[str, list[Finding]] = {asked: []}
    for finding in target.findings:
        by_device.setdefault(_policy_of(finding, settings), []).append(finding)
    rows: list[Row] = []
    timelines: list[TimelineRun] = []
    built: str | None = None
    for device, findings in by_device.items():
        concerned = replace(target, findings=tuple(findings))
        done = _verify(concerned, outline, settings, device, progress)
        rows += done.rows if device == asked else [row for row in done.rows if row.code is not None]
        timelines += done.timelines
        built = done.built or built
    return Verified(tuple(replace(row, given=settings.given) for row in rows), tuple(timelines), built)


def _policy_of(finding: Finding, settings: Settings) -> str:
    """The cast policy to run a finding by: the one asked for, unless its rule fails by others only (AMP108)."""
    asked = settings.options.device
    rule = next((rule for rule in settings.options.rules if rule.code == finding.code), None)
    return rule.devices[0] if rule is not None and rule.devices and asked not in rule.devices else asked


def _verify(
    target: Target, outline: Outline, settings: Settings, device: str, progress: Callable[[str], None] | None
) -> Verified:
    job = job_of(target, outline, settings, device)
    if not target.runnable:
        report = Report(broken=NO_WHOLE)
        return Verified(tuple(_alone_rows(target, job, report, settings.options, progress)))
    with tempfile.TemporaryDirectory(prefix="amplint-answers-") as folder:
        answers = str(Path(folder) / "answers")
        report = run_job(replace(job, answers=answers), progress)
        older = _on_old_capability(job, report, progress)
        after: dict[Cell, Outcome] = {}
        fixed = _fixed(target.path, settings.options) if settings.fix_check and target.findings else None
        if fixed is not None and report.outcomes:
            again = replace(
                job,
                overlay={job.path: fixed},
                baseline=answers,
                claims=(),
                trace=False,
                inner=tuple(o.cell for o in report.outcomes if o.inner),
                variants=tuple(dict.fromkeys(o.variant for o in report.outcomes if o.variant)),
            )
            after = _by_cell(run_job(again, progress).outcomes)
            if older:
                skip = tuple(cell for cell in after if cell not in older)
                again = replace(again, capability=OLD_CAPABILITY, skip=skip, baseline=None)
                after |= _by_cell(run_job(again, progress).outcomes)
    if report.broken is not None:
        if target.name is None:  # its findings are those of other targets too
            return Verified(tuple(_broken_rows(target, job, report)))
        return Verified(tuple(_alone_rows(target, job, report, settings.options, progress)))
    target = _spoken_for(target, outline, report)
    rows: list[Row] = []
    timelines: list[TimelineRun] = []
    for outcomes in _together((_by_cell(report.outcomes) | older).values()):
        made = list(_rows(target, outline, job, report, outcomes, after))
        rows += made
        timelines += [_timeline(made, outcome, report) for outcome in outcomes if outcome.timeline is not None]
    return Verified(tuple(rows), tuple(timelines), report.target)


def job_of(target: Target, outline: Outline, settings: Settings, device: str) -> Job:
    """The job that runs a target by a device's policy."""
    silent = {rule.code for rule in settings.options.rules if not rule.claims_failure}
    claims = tuple(
        replace(claim, settled_by_failure=claim.code not in silent) for claim in claims_of(target.findings, outline)
    )
    return Job(
        path=str(target.path),
        name=target.name,
        device=device,
        run_on=settings.run_on if device == settings.options.device else "cpu",
        scenarios=settings.scenarios,
        results="",
        root=str(settings.root),
        factory=_factory(target, settings),
        claims=claims,
        timeout=settings.timeout,
        memory=settings.memory,
        trace=settings.trace,
        lines=tuple((claim.filename, claim.rows[0][0]) for claim in claims),
        own=tuple((str(target.path), *rows) for rows in outline.rows(target.name)),
    )


def _by_cell(outcomes: Iterable[Outcome]) -> dict[Cell, Outcome]:
    return {outcome.cell: outcome for outcome in outcomes}


def _together(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """The outcomes of each scenario and mode: what is built first, then its variants that ran."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if not outcome.variant or outcome.kind in (CLEAN, *CONFIRMING):
            found.setdefault((outcome.scenario, outcome.mode), []).append(outcome)
    order = {name: index for index, name in enumerate(dict.fromkeys(scenario for scenario, _ in found))}
    cells = sorted(found, key=lambda cell: (order[cell[0]], MODES.index(cell[1])))
    return [found[cell] for cell in cells]


def _spoken_for(target: Target, outline: Outline, report: Report) -> Target:
    """The file's example with the findings that it speaks for: those of the class that it built and of what this
    reaches by name, and those whose lines its run reached. A target that is named keeps its own."""
    if target.name is not None or report.target is None:
        return target
    names = {report.target.partition(".")[0], *outline.reached(report.target.partition(".")[0])}
    ran = {fingerprint for outcome in report.outcomes for fingerprint in (*outcome.reached, *outcome.confirmed)}
    spoken = [f for f in target.findings if outline.owner(f.span.start.row)[0] in names or f.fingerprint in ran]
    return replace(target, findings=tuple(spoken))


def _timeline(rows: list[Row], outcome: Outcome, report: Report) -> TimelineRun:
    verdicts = [row.verdict for row in rows]
    worst = min(verdicts, key=list(Verdict).index)
    first = rows[verdicts.index(worst)]
    about = {
        **{name: getattr(first, name) for name in ("target", "scenario", "mode", "device", "run_on", "reproduce")},
        "verdict": worst.value,
        "torch": report.torch,
        "error": outcome.error,
        "codes": [row.code for row in rows if row.verdict is worst and row.code],
        "seconds": outcome.seconds,
    }
    return TimelineRun.from_json({**about, **(outcome.timeline or {})})


def _factory(target: Target, settings: Settings) -> str | None:
    """The configured factory of a target, with a file's path made absolute."""
    for key, value in settings.factories.items():
        file, _, name = key.rpartition("::")
        if name == target.name and (not file or (settings.root / file).resolve() == target.path.resolve()):
            source, separator, function = value.partition("::")
            return f"{settings.root / source}::{function}" if separator else value
    return None


def _on_old_capability(job: Job, report: Report, progress: Callable[[str], None] | None) -> dict[Cell, Outcome]:
    """Where the code asks what the GPU can do and a finding was not confirmed, run as on an older GPU too.

    Returns the cells of that second run that confirm a finding.
    """
    if not report.asked_capability or job.run_on != "cpu":
        return {}
    first = [outcome for outcome in report.outcomes if not outcome.variant]
    skip = tuple(o.cell for o in first if o.confirmed or not any(o.scenario in claim.scenarios for claim in job.claims))
    if len(skip) == len(first):
        return {}
    older = run_job(replace(job, capability=OLD_CAPABILITY, skip=skip, variants=()), progress)
    number = ".".join(map(str, OLD_CAPABILITY))
    return {
        o.cell: replace(o, error=f"{o.error} (on a GPU of compute capability {number})")
        for o in older.outcomes
        if o.kind in CONFIRMING and o.confirmed
    }


def _fixed(path: Path, options: Options) -> str | None:
    """The file after every codemod, unsafe ones too; None where nothing changes."""
    result = check_file(path, replace(options, fix=Applicability.UNSAFE, write=False))
    return Source(path, result.after).text if result.after is not None else None


def _rows(
    target: Target,
    outline: Outline,
    job: Job,
    report: Report,
    outcomes: list[Outcome],
    afterwards: Mapping[Cell, Outcome],
) -> Iterator[Row]:
    """The rows of one scenario and mode. ``outcomes`` are those of what is built first and of its variants; each
    finding gets the verdict of the one that says most."""

    built = report.target if report.target in outline.classes else EXAMPLE
    name = f"{target.path}::{target.name or built}"

    def row_of(outcome: Outcome) -> Row:
        row = Row(name, outcome.scenario, outcome.mode, job.device, job.run_on, _PLAIN[outcome.kind])
        return replace(row, asked=str(target), how=report.how, **_told(outcome))

    concerned = [finding for finding in target.findings if outcomes[0].scenario in finding.scenarios]
    unclaimed = [outcome for outcome in outcomes if outcome.kind in CONFIRMING and not outcome.confirmed]
    if unclaimed or not concerned:
        outcome = (unclaimed or outcomes)[0]
        yield replace(row_of(outcome), code=outcome.family if outcome.kind in CONFIRMING else None)
    for finding in concerned:
        verdict, outcome = _most_telling(finding, outcomes)
        after = afterwards.get(outcome.cell)
        row = replace(row_of(outcome), code=finding.code, fingerprint=finding.fingerprint, verdict=verdict)
        row = replace(row, claimed_at=(str(finding.filename), finding.span.start.row))
        if verdict in (Verdict.NOT_REACHED, Verdict.NOT_REPRODUCED):
            row = replace(row, error=_stopped(outcome), location=None)
        if after is not None:
            row = replace(row, fix=_effect(finding, verdict, after), largest_error=after.difference)
        yield row


def _told(outcome: Outcome) -> dict[str, Any]:
    """What a row says of what ran, as fields of it."""
    names = ("error", "location", "frames", "seconds", "built", "inputs", "variant")
    return {name: None if (value := getattr(outcome, name)) == "" else value for name in names}


def _most_telling(finding: Finding, outcomes: list[Outcome]) -> tuple[Verdict, Outcome]:
    order = list(Verdict)
    verdicts = [(_of_finding(finding, outcome), outcome) for outcome in outcomes]
    return min(verdicts, key=lambda pair: order.index(pair[0]))


def _of_finding(finding: Finding, outcome: Outcome) -> Verdict:
    if finding.fingerprint in outcome.confirmed:
        return Verdict.CONFIRMED
    if outcome.kind not in (CLEAN, *CONFIRMING):
        return _PLAIN[outcome.kind]
    return Verdict.NOT_REPRODUCED if finding.fingerprint in outcome.reached else Verdict.NOT_REACHED


def _stopped(outcome: Outcome) -> str | None:
    """Why a finding was not settled, where the run failed somewhere else."""
    if outcome.kind == CLEAN or outcome.location is None:
        return None
    return f"the run ended at {Path(outcome.location[0]).name}:{outcome.location[1]}: {outcome.error}"


def _effect(finding: Finding, verdict: Verdict, after: Outcome) -> FixEffect | None:
    if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
        return None
    if verdict is Verdict.CONFIRMED:
        if after.kind != CLEAN:
            return FixEffect.DOES_NOT_CURE
        return FixEffect.CHANGES_NUMERICS if (after.difference or 0.0) > UNCHANGED else FixEffect.CURES
    return FixEffect.CHANGES_NUMERICS if after.difference else None


def _alone_rows(
    target: Target, job: Job, report: Report, options: Options, progress: Callable[[str], None] | None
) -> Iterator[Row]:
    """A target that does not run as a whole: each finding by its operation alone, in each of its scenarios."""
    if not target.findings:
        yield from _broken_rows(target, job, report)
        return
    alone = run_alone(target, job, options, progress)
    for scenario in job.scenarios:
        for finding in target.findings:
            row = Row(str(target), scenario, "eval", job.device, job.run_on, Verdict.NOT_RUNNABLE)
            row = replace(row, code=finding.code, fingerprint=finding.fingerprint)
            outcome = alone.outcomes.get((scenario, finding.fingerprint))
            reason = alone.reasons.get((scenario, finding.fingerprint))
            if outcome is not None:
                how = f"{HOW}: {report.broken}"
                yield replace(row, verdict=_of_finding(finding, outcome), how=how, **_told(outcome))
            elif reason is not None:
                yield replace(row, error=f"{report.broken}; alone: {reason}", advice=report.advice)


def _broken_rows(target: Target, job: Job, report: Report) -> Iterator[Row]:
    """A target without findings that could not be built."""
    for scenario in job.scenarios:
        for mode in BASE:
            row = Row(str(target), scenario, mode, job.device, job.run_on, Verdict.NOT_RUNNABLE)
            yield replace(row, error=report.broken, advice=report.advice)
