"""From files to findings: gate, inference, rules, suppression; one process or several."""

from __future__ import annotations

import os
import warnings
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from amplint import contents
from amplint.finding import Applicability, FileResult, Finding, with_fingerprints
from amplint.frozen import dataclass, quick_libraries
from amplint.garbage import collect_after_file
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS, Scenario
from amplint.narrowing import WHOLE
from amplint.notebook import is_notebook
from amplint.rule_base import finding_of
from amplint.source import Source, SourceError
from amplint.suppression.unused import Rules
from amplint.threshold import EVERYTHING, Threshold
from amplint.unparsable import UNPARSABLE, is_no_source

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts
    from amplint.narrowing import Narrowing
    from amplint.rule_base import Announced, Rule
    from amplint.torch_range import TorchRange

Results: TypeAlias = "Generator[FileResult, None, None]"

POOL_BYTES = 2_000_000
"""Below this much source, starting processes costs more than it saves."""

DEBUG_VARIABLE = "AMPLINT_DEBUG"


@dataclass(frozen=True, slots=True)
class Options:
    """What to check for.

    ``fix`` is the highest applicability to apply, None to apply none; ``write`` says whether :func:`check_files` writes
    fixed files back. ``torch_version`` is None for what each file's project requires. ``pedantic`` keeps what is merely
    possible, ``dropped`` also what a doubt drops, as possible. What is below ``threshold`` does not count.
    ``each_place``: a finding for each place where code fails, also where several fail for one cause, and none about
    comments; ``apart``: those of one cause are not made one. ``asked``: codes of rules whose kinds in preview
    (:mod:`amplint.judge.preview`) are told too. ``known``: all rules, on or off, that comments may name; None where
    they may name others. Scenarios that are named are meant everywhere; None stands for the default ones, each where
    the code runs so.
    """

    rules: tuple[Announced, ...]
    scenarios: tuple[Scenario, ...] | None = None
    device: str = "cuda"
    torch_version: tuple[int, int] | None = None
    pedantic: bool = False
    threshold: Threshold = EVERYTHING
    each_place: bool = False
    apart: bool = False
    dropped: bool = False
    asked: frozenset[str] = frozenset()
    known: tuple[Announced, ...] | None = None
    fix: Applicability | None = None
    write: bool = True

    @property
    def judged(self) -> tuple[Scenario, ...]:
        """The scenarios to judge under."""
        return DEFAULT_SCENARIOS if self.scenarios is None else self.scenarios

    def judged_in(self, release: tuple[int, int]) -> tuple[Scenario, ...]:
        """Those of them that a release of torch can run; all where they are named."""
        return tuple(one for one in self.judged if self.scenarios or release >= one.since)

    def torch_for(self, path: Path) -> TorchRange:
        """The releases of torch that a file is judged for."""
        from amplint.torch_range import TorchRange, torch_range

        if self.torch_version is not None:
            return TorchRange(self.torch_version, self.torch_version)
        return torch_range(path.parent)


def check_file(file: Path | Source, options: Options, narrowing: Narrowing = WHOLE) -> FileResult:
    """Check one file, and fix what it holds if the options say so; nothing is written. What ``narrowing`` leaves out is
    neither found nor fixed. Never raises for what is in the file."""
    if isinstance(file, Source):
        source = file
    else:
        try:
            source = Source(file, contents.read(file))
        except OSError as error:
            return FileResult(file, error=f"cannot read {file}: {error.strerror or error}")
    if is_notebook(source.path):
        from amplint.notebook.checking import check_notebook

        return check_notebook(
            source,
            lambda program: _check_python(program, options, narrowing),
            lambda cell, error: _unparsable(cell, error, options, "cell"),
            lambda refused: narrowing.split(refused, source),
        )
    return _check_python(source, options, narrowing)


def _check_python(source: Source, options: Options, narrowing: Narrowing) -> FileResult:
    """Check Python source, and fix it where the options say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _check(source, options, narrowing)
        if options.fix is None or not any(finding.fix for finding in result.findings):
            return result
        return _fixed(source, result, options, options.fix, narrowing)


def _fixed(
    source: Source, result: FileResult, options: Options, highest: Applicability, narrowing: Narrowing
) -> FileResult:
    """What is left after fixing, and the fixed bytes."""
    from amplint.fix import fix_source
    from amplint.kept_back import is_kept_back

    followed = set(result.followed)

    def check(changed: Source) -> FileResult:
        again = _check(changed, options, narrowing)
        followed.update(again.followed)
        return again

    def kept_back(changed: Source) -> FileResult:
        wide = replace(options, asked=frozenset(rule.code for rule in options.rules), apart=True)
        again = _check(changed, wide, narrowing)
        followed.update(again.followed)
        return replace(again, findings=tuple(f for f in again.findings if is_kept_back(f, options.asked)))

    outcome = fix_source(source, result, highest, check, kept_back if options.scenarios is None else None)
    broken = [rule for rule in options.rules if rule.code in outcome.broken]
    unsettled = f"not all fixes of {source.path} were tried; run again for the others"
    result = replace(
        outcome.result,
        failures=(*outcome.result.failures, *(_breaking(rule, source.path) for rule in broken)),
        notes=() if outcome.settled else (unsettled,),
        followed=frozenset(followed),
    )
    if outcome.source.data == source.data:
        return result
    return replace(result, fixed=outcome.fixed, before=source.data, after=outcome.source.data)


def _check(source: Source, options: Options, narrowing: Narrowing) -> FileResult:
    failures: list[str] = []
    followed: set[Path] = set()
    readable, alone = source, True
    try:
        source.tree  # noqa: B018
        rules = _rules_for(source, options, failures)
        alone = not rules and not _may_report(source, options, failures)
        findings = _findings(source, options, rules, failures, followed)
        findings = _unsilenced(source, _distinct(findings), options, failures)
    except SourceError as error:
        findings = _unparsable(source, error, options)
        readable, followed = source.or_empty(), set()
    findings, known = _told(findings, readable, options, narrowing) if findings else ([], [])
    return FileResult(
        source.path,
        tuple(findings),
        tuple(failures),
        followed=frozenset(followed),
        known=tuple(known),
        alone=alone,
    )


def _told(
    findings: list[Finding], source: Source, options: Options, narrowing: Narrowing
) -> tuple[list[Finding], list[Finding]]:
    """The findings that count, one for each cause, and those that a baseline knows."""
    from amplint.notebook.narrowing import told_together
    from amplint.one_cause import at_each_place, one_for_each_cause

    findings = with_fingerprints(findings, source)
    findings = [finding for finding in findings if options.dropped or options.threshold.keeps(finding)]
    findings, known = narrowing.split(findings, source)
    if not options.apart:
        joined = at_each_place if options.each_place else one_for_each_cause
        findings = [told for together in told_together(findings, source) for told in joined(together)]
    return findings, known


def _may_report(source: Source, options: Options, failures: list[str]) -> bool:
    """Whether something may have to be said of comments that silence nothing."""
    if failures or options.each_place:
        return False
    return Rules(options.rules, options.known).may_report(source.data)


def _unsilenced(source: Source, findings: list[Finding], options: Options, failures: list[str]) -> list[Finding]:
    """What no comment silences, and what is to be said of comments that silence nothing."""
    reporting = _may_report(source, options, failures)
    if not findings and not reporting:
        return findings
    from amplint.suppression.hiding import Suppressions

    suppressions = Suppressions(source)
    left = suppressions.left(findings)
    if reporting:
        from amplint.suppression.faults import reports

        rules = Rules(options.rules, options.known)
        left += reports(source, suppressions, rules, lambda: _widely(source, options), options.device)
    return left


def _widely(source: Source, options: Options) -> list[Finding] | None:
    """What is found where everything possible counts, in the scenarios of the run and the default ones; None for a
    failure."""
    failures: list[str] = []
    found: list[Finding] = []
    for scenarios in dict.fromkeys((options.scenarios, None)):
        wide = replace(options, pedantic=True, scenarios=scenarios)
        found += _findings(source, wide, _rules_for(source, wide, failures), failures, set())
    return None if failures else found


def _unparsable(source: Source, error: SourceError, options: Options, whole: str = "file") -> list[Finding]:
    """The finding that stands for a file or a cell that is no Python; none where it is not meant as Python, or where
    none is asked."""
    if is_no_source(source, error) or all(rule.code != UNPARSABLE.code for rule in options.rules):
        return []
    return [UNPARSABLE.finding(source, error, options.device, whole)]


def _rules_for(source: Source, options: Options, failures: list[str]) -> list[Announced]:
    """The rules that may find something, by the text alone."""
    return [rule for rule in options.rules if _may_find(rule, source, failures)]


def _findings(
    source: Source, options: Options, needed: list[Announced], failures: list[str], followed: set[Path]
) -> list[Finding]:
    if not needed:
        return []
    rules = [rule.imported() for rule in needed]
    torch = options.torch_for(source.path)
    findings, facts = _judged(source, options, rules, torch, torch.newest, failures, followed)
    if facts is None:
        return []
    changes = {release for rule in rules for release in rule.changes} | facts.changes
    for release in torch.before(changes):
        told = {(finding.code, finding.span) for finding in findings}
        older, _ = _judged(source, options, rules, torch, release, failures, followed)
        allowed = (
            f", in torch {release[0]}.{release[1]}, which {torch.stated_in.name} allows" if torch.stated_in else ""
        )
        findings += [replace(f, message=f.message + allowed) for f in older if (f.code, f.span) not in told]
    return findings


def _may_find(rule: Announced, source: Source, failures: list[str]) -> bool:
    try:
        return rule.may_find(source.data)
    except Exception as error:
        failures.append(_failure(_failing(rule), source.path, error))
        return False


def _judged(
    source: Source,
    options: Options,
    rules: list[Rule],
    torch: TorchRange,
    release: tuple[int, int],
    failures: list[str],
    followed: set[Path],
) -> tuple[list[Finding], FileFacts | None]:
    """What the rules find in one release of torch, and the facts they found it by, None where there are none.

    ``followed`` gets the other files that decided it.
    """
    from amplint.infer.syntax.scripts import run_in_full_precision
    from amplint.project.ends import Judging
    from amplint.telling import standing, weighed

    scenarios = (CONTROL, *(scenario for scenario in options.judged_in(release) if scenario != CONTROL))
    oldest = torch.oldest if options.torch_version or torch.bounded else None
    judging = Judging(scenarios, options.device, release, oldest, options.scenarios is not None)
    try:
        facts = judging.facts(source)
    except RecursionError as error:
        raise SourceError("nested too deeply to be analysed") from error
    except Exception as error:
        failures.append(_failure("internal error in the inference", source.path, error))
        return [], None
    suspects: list[tuple[Rule, Suspect]] = []
    blocks = run_in_full_precision(facts.source.tree)
    for rule in rules:
        try:
            found = [weighed(one, rule, facts, options, blocks) for one in standing(rule.suspects(facts), options)]
        except RecursionError as error:
            raise SourceError("nested too deeply to be analysed") from error
        except Exception as error:
            failures.append(_failure(_failing(rule), source.path, error))
            continue
        suspects.extend((rule, s) for s in found if s.standing.told or options.pedantic or options.dropped)
    followed |= facts.followed
    if not suspects:
        return [], facts
    from amplint.weighing import by_file, by_memory, by_ways_in

    try:
        suspects = by_memory(suspects, facts)
        suspects = by_ways_in(suspects, facts, judging, followed)
        if options.scenarios is None:
            suspects = by_file(suspects, facts)
    except RecursionError as error:
        raise SourceError("nested too deeply to be analysed") from error
    suspects = [(rule, s) for rule, s in suspects if s.standing.told or options.pedantic or options.dropped]
    if not suspects:
        return [], facts
    plain = [(rule, s) for rule, s in suspects if not rule.visits and s.standing.certainty is not None]
    findings = [finding_of(rule, s, facts.path, facts.device) for rule, s in plain]
    suspects = [(rule, s) for rule, s in suspects if rule.visits]
    if not suspects:
        return findings, facts
    with quick_libraries():
        from amplint.visit import RuleFailure, run_rules

    broken: list[RuleFailure] = []
    findings += run_rules(source, facts, suspects, broken)
    failures.extend(_failure(_failing(failure.rule), source.path, failure.error) for failure in broken)
    return findings, facts


def _failing(rule: Announced) -> str:
    """Whose mistake it is that a rule raises."""
    return f"the rule pack {rule.pack} fails in {rule.code}" if rule.pack else f"internal error in {rule.code}"


def _breaking(rule: Announced, path: Path) -> str:
    return f"{_failing(rule)}: its fix breaks {path} and is not applied; --ignore {rule.code} leaves the rule out"


def _failure(what: str, path: Path, error: BaseException) -> str:
    line = f"{what} on {path}: {type(error).__name__}: {error}".replace("\n", " ")
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        return line + "\n" + "".join(traceback.format_exception(error)).rstrip()
    return line


def _distinct(findings: list[Finding]) -> list[Finding]:
    """One finding for each code and place, in report order."""
    seen: dict[object, Finding] = {}
    for finding in findings:
        seen.setdefault((finding.code, finding.span), finding)
    return sorted(seen.values(), key=lambda finding: finding.sort_key)


@dataclass(frozen=True, slots=True)
class Task:
    """One file to check: its absolute path, its size in bytes, what to check it for, and what to leave out."""

    path: Path
    size: int
    options: Options
    narrowing: Narrowing = WHOLE


def check_files(tasks: Sequence[Task], jobs: int | None = None, executor: Executor | None = None) -> Results:
    """Check files; results come as they are ready, in no fixed order, but by path from one process or an executor.

    Where the options say so, files are fixed, and written when all is settled; a file whose findings rest on what was
    fixed elsewhere then comes again. ``jobs`` is the number of processes, by default the number of CPUs this process
    may use; little source is checked in this process whatever the number. An ``executor`` takes their place where
    nothing is fixed.
    """
    if executor is not None:
        yield from _spread(tasks, executor)
        return
    if all(task.options.fix is None for task in tasks):
        yield from _run(tasks, jobs, {})
        return
    from amplint.fix.rounds import fix_files

    known = {task.path: task for task in tasks}
    looking = {task.options: replace(task.options, fix=None) for task in tasks}

    def check(paths: Sequence[Path], held: Mapping[Path, bytes], *, fixing: bool) -> Results:
        chosen = [known[path] for path in paths]
        if not fixing:
            chosen = [replace(task, options=looking[task.options]) for task in chosen]
        return _run(chosen, jobs, held)

    yield from fix_files(list(known), check, write=any(task.options.write for task in tasks))


def _run(tasks: Sequence[Task], jobs: int | None, held: Mapping[Path, bytes]) -> Results:
    """Check files once, with other files as they are on disk, or as ``held`` has them."""
    count = min(jobs or _cpus(), len(tasks))
    if count < 2 or sum(task.size for task in tasks) < POOL_BYTES:
        with contents.standing(held):
            yield from map(_guarded, sorted(tasks, key=lambda task: task.path))
    else:
        from amplint.worker_pool import pooled

        with closing(pooled(_guarded, _ordered(tasks), count, held)) as done:
            for task, result in done:
                yield result or _fatal(task)


def _ordered(tasks: Sequence[Task]) -> list[Task]:
    """Files with the same options together, since they share the project files read so far; large ones first."""
    groups: dict[int, list[Task]] = {}
    for task in tasks:
        groups.setdefault(id(task.options), []).append(task)
    by_size = sorted(groups.values(), key=lambda group: -sum(task.size for task in group))
    return [task for group in by_size for task in sorted(group, key=lambda task: (-task.size, task.path))]


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _guarded(task: Task) -> FileResult:
    """:func:`check_file`, with what it did not expect turned into one line."""
    collect_after_file(task.size)
    try:
        return check_file(task.path, task.options, task.narrowing)
    except Exception as error:
        return FileResult(task.path, failures=(_failure("internal error in amplint", task.path, error),))


def _spread(tasks: Sequence[Task], executor: Executor) -> Results:
    from amplint.executing import spread

    for task, result in spread(executor, _guarded, sorted(tasks, key=lambda task: task.path)):
        if isinstance(result, Exception):
            failure = _failure("the executor fails", task.path, result)
            yield FileResult(task.path, failures=(failure,))
        else:
            yield result or _fatal(task)


def _fatal(task: Task) -> FileResult:
    return FileResult(task.path, failures=(f"internal error: a process died of checking {task.path}",))
