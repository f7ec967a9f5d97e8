"""``amplint check``: find hazards, and fix them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from amplint.cache import LEAST_FILES
from amplint.cli.choosing import changing, choosing_options, split_ignores
from amplint.cli.colour import When, color_option
from amplint.cli.left_out import LeftOut, check_together, narrowing_options
from amplint.cli.main import CLEAN, FAILED, FOUND, counted, deliver, error_message, message, print_lines
from amplint.cli.options import ReportingArguments, configured_format, judging_command
from amplint.cli.terminal import terminal_columns
from amplint.config import UsageError
from amplint.engine import Results, Task, check_file, check_files
from amplint.files import forced_out
from amplint.finding import Applicability, FileResult, Finding, Severity
from amplint.frozen import dataclass
from amplint.garbage import collect_seldom
from amplint.passed_over import PassedOver
from amplint.planning import plan
from amplint.report import FORMATS, Context, plain, render
from amplint.source import Source

if TYPE_CHECKING:
    from amplint.judging import Judging

_F = TypeVar("_F", bound=Callable[..., Any])
STDIN = "-"


@dataclass(frozen=True, slots=True)
class Arguments(ReportingArguments):
    """The command line of one run, as given."""

    paths: tuple[str, ...]
    fix: bool
    unsafe_fixes: bool | None
    diff: bool
    extend_select: tuple[str, ...]
    per_file_ignores: tuple[str, ...]
    exclude: tuple[str, ...]
    extend_exclude: tuple[str, ...]
    force_exclude: bool | None
    output_file: str | None
    stdin_filename: str | None
    no_cache: bool
    cache_dir: str | None
    jobs: int | None
    exit_non_zero_on_fix: bool
    baseline: str | None
    write_baseline: str | None
    diff_base: str | None
    add_ignore: bool
    statistics: bool
    show_files: bool
    show_settings: bool
    verify: bool
    watch: bool
    color: When
    quiet: bool
    verbose: bool


@click.command("check")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option("--fix", is_flag=True, help="Apply safe fixes.")
@click.option(
    "--unsafe-fixes/--no-unsafe-fixes", default=None, help="With --fix or --diff, apply fixes that change numerics too."
)
@click.option("--diff", is_flag=True, help="Print what --fix would change as a unified diff; write nothing.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Leave with status 1 when a fix was applied.")
@narrowing_options
@click.option("--extend-select", multiple=True, metavar="RULES", help="Rules besides the selected ones.")
@choosing_options
@judging_command(*FORMATS, configured=True)
@click.option("--output-file", type=click.Path(dir_okay=False), help="Write the report there instead of to stdout.")
@click.option("--statistics", is_flag=True, help="Print how many findings each rule has instead of the findings.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one for each CPU]")
@click.option("--no-cache", is_flag=True, help="Check every file, and keep nothing.")
@click.option("--cache-dir", type=click.Path(file_okay=False), help="Where results are kept between runs.")
@click.option("--stdin-filename", metavar="PATH", help="The name for what is read from stdin, where PATHS is -.")
@click.option("--show-files", is_flag=True, help="List what would be checked, on stderr what not and why, and stop.")
@click.option("--show-settings", is_flag=True, help="Print what holds for PATHS, and stop.")
@click.option("--verify", is_flag=True, help="Run what was found, and set the verdict beside it; needs torch.")
@click.option("--watch", is_flag=True, help="Check again after each change, until Ctrl-C.")
@color_option
@click.option("-q", "--quiet", is_flag=True, help="Print what is found, and nothing else but errors.")
@click.option("-v", "--verbose", is_flag=True, help="Say what each project was judged by: torch, scenarios, precision.")
def command(**arguments: Any) -> None:
    """Find mixed-precision dtype hazards in PATHS (files and folders; - is stdin), by default in this folder.

    Reads code and never imports it, unless --verify asks for that.

    \b
    Exit status: 0 nothing to report, 1 findings remain, 2 wrong usage, unreadable path or internal failure.

    \b
    With --verify, errors whose lines ran in every scenario that they name and did not fail stand apart, and do not
    count.
    """
    if arguments["output_format"] is None:
        arguments["output_format"] = configured_format(arguments["config"], isolated=arguments["isolated"])
    sys.exit(run(Arguments(**arguments)))


def run(arguments: Arguments) -> int:
    """Check, report, and say the exit status. Raises UsageError."""
    paths = arguments.paths or (".",)
    if arguments.unsafe_fixes is not None and not (arguments.fix or arguments.diff):
        raise UsageError(f"--{'' if arguments.unsafe_fixes else 'no-'}unsafe-fixes needs --fix or --diff")
    if arguments.quiet and arguments.verbose:
        raise UsageError("--quiet and --verbose contradict each other")
    if STDIN in paths and len(paths) > 1:
        raise UsageError("- (stdin) cannot be combined with other paths")
    if STDIN in paths and (arguments.show_files or arguments.show_settings):
        raise UsageError(f"--show-{'files' if arguments.show_files else 'settings'} does not go with - (stdin)")
    if arguments.stdin_filename is not None and STDIN not in paths:
        raise UsageError("--stdin-filename needs the path -")
    if arguments.verify:
        _require_runnable(arguments)
    if arguments.watch:
        _require_watchable(arguments)
    check_together({**_given(arguments), STDIN: STDIN in paths})
    left_out = LeftOut(arguments)
    judging = arguments.judging(
        changed=changing(arguments),
        extend_select=arguments.extend_select,
        fix=Applicability.SAFE if arguments.fix or arguments.diff else None,
        write=not arguments.diff,
        apart=arguments.add_ignore or arguments.write_baseline is not None,
    )
    selectors = (
        *(arguments.select, arguments.ignore, arguments.extend_select),
        *(ignores.codes for ignores in split_ignores(arguments.per_file_ignores).values()),
    )
    if STDIN in paths:
        return _check_stdin(arguments, judging, selectors, left_out)
    planned = plan(paths, judging, selectors)
    if arguments.watch:
        from amplint.cli.watching import watch

        return watch(paths, judging.configurations, quiet=arguments.quiet)
    tasks = left_out.narrowed(zip(planned.tasks, planned.configs, strict=True), paths)
    errors, passed_over = planned.errors, planned.passed_over
    for line in errors:
        error_message(line)
    if arguments.show_files or arguments.show_settings:
        from amplint.cli.showing import show_files, show_settings

        if arguments.show_settings:
            show_settings(arguments, tasks, judging)
        else:
            show_files(tasks, passed_over, quiet=arguments.quiet)
        return FAILED if errors else CLEAN
    _tell_in_force(arguments, judging, tasks)
    context = Context(
        judging.rules,
        pedantic=any(task.options.pedantic for task in tasks),
        unsafe_in=frozenset(
            task.path
            for task, config in zip(planned.tasks, planned.configs, strict=True)
            if arguments.unsafe_fixes is None and config.unsafe_fixes
        ),
        errors=list(errors),
    )
    if arguments.verify:
        _prove(arguments, judging, tasks, context)
    results = passed_over.take(_check_all(tasks, arguments))
    if left_out.writes_baseline:
        failed = bool(_tell_failures(results)) or bool(errors)
        left_out.write_baseline(results)
        return FAILED if failed else CLEAN
    if arguments.add_ignore:
        from amplint.cli.adding import add_ignores

        results = add_ignores(tasks, results, quiet=arguments.quiet)
    status = _conclude(arguments, context, results, passed_over, left_out, failed=bool(errors))
    if not arguments.quiet and sys.stderr.isatty() and any(result.findings for result in results):
        from amplint.cli.in_force import suggestion

        for line in suggestion(tasks, judging, arguments):
            click.echo(line, err=True)
    return status


def _given(arguments: Arguments) -> dict[str, bool]:
    """Which options were given."""
    return {f"--{name.replace('_', '-')}": bool(getattr(arguments, name)) for name in Arguments.__slots__}


def _tell_in_force(arguments: Arguments, judging: Judging, tasks: Sequence[Task]) -> None:
    """On stderr: one line on a terminal, more where it is asked for."""
    if not arguments.quiet and (arguments.verbose or sys.stderr.isatty()):
        from amplint.cli.in_force import head, lines

        for line in (lines if arguments.verbose else head)(tasks, judging, arguments):
            click.echo(line, err=True)


def _require_runnable(arguments: Arguments) -> None:
    """Raise UsageError for what --verify does not go with."""
    from amplint.cli.running import require_torch

    require_torch("--verify")
    if STDIN in arguments.paths:
        raise UsageError("--verify runs files: it cannot run what stdin holds")
    for option, given in (("--diff", arguments.diff), ("--statistics", arguments.statistics)):
        if given:
            raise UsageError(f"{option} shows no verdicts: it does not go with --verify")


def _require_watchable(arguments: Arguments) -> None:
    """Raise UsageError for what --watch does not go with."""
    once = {
        "- (stdin)": STDIN in arguments.paths,
        "--diff": arguments.diff,
        "--output-file": arguments.output_file is not None,
        "--show-files": arguments.show_files,
        "--show-settings": arguments.show_settings,
        "--write-baseline": arguments.write_baseline is not None,
        "--add-ignore": arguments.add_ignore,
    }
    for option, given in once.items():
        if given:
            raise UsageError(f"--watch checks again and again: it does not go with {option}")


def _prove(arguments: Arguments, judging: Judging, tasks: Sequence[Task], context: Context) -> None:
    """Run what is found before anything is fixed."""
    from amplint.cli.proving import proofs

    plain = [replace(task, options=replace(task.options, fix=None)) for task in tasks]
    context.proofs = proofs(arguments, judging, plain, _check_all(plain, arguments))


def _check_all(tasks: Sequence[Task], arguments: Arguments) -> list[FileResult]:
    from amplint.report.progress import counting

    collect_seldom()
    results: dict[Path, FileResult] = {}
    sizes = {task.path: task.size for task in tasks}
    with (
        counting(sum(sizes.values()), shown=not arguments.quiet) as advance,
        closing(_results(tasks, arguments)) as stream,
    ):
        for result in stream:
            if result.path not in results:
                advance(sizes[result.path])
            results[result.path] = result
    return sorted(results.values(), key=lambda result: str(result.path))


def _results(tasks: Sequence[Task], arguments: Arguments) -> Results:
    """What is found in files, by an earlier run where nothing changed since."""
    if arguments.no_cache or len(tasks) < LEAST_FILES or any(task.options.fix is not None for task in tasks):
        return check_files(tasks, arguments.jobs)
    from amplint.cache.checking import checked
    from amplint.cache.store import default_folder

    folder = Path(arguments.cache_dir).absolute() if arguments.cache_dir is not None else default_folder()
    return checked(tasks, folder, lambda left: check_files(left, arguments.jobs))


def _check_stdin(arguments: Arguments, judging: Judging, selectors: Sequence[Sequence[str]], left_out: LeftOut) -> int:
    path = Path(arguments.stdin_filename or "<stdin>").absolute()
    source = Source(path, sys.stdin.buffer.read())
    judged = judging.valid_file(path)
    judging.require(*selectors)
    task = left_out.narrowed_stdin(Task(path, len(source.data), judged.options), judged.config, source)
    _tell_in_force(arguments, judging, [task])
    context = Context(judging.rules, pedantic=task.options.pedantic)
    passed_over = PassedOver()
    forced = forced_out(path, judging.configurations)
    if forced is not None:
        passed_over.count([forced])
    result = check_file(source, task.options, task.narrowing) if forced is None else FileResult(path)
    context.sources[path] = Source(path, result.after) if result.after is not None else source
    if arguments.fix and not arguments.diff:
        sys.stdout.buffer.write(source.data if result.after is None else result.after)
        sys.stdout.flush()
    results = passed_over.take([result] if forced is None else [])
    return _conclude(arguments, context, results, passed_over, left_out)


def _conclude(
    arguments: Arguments,
    context: Context,
    results: list[FileResult],
    passed_over: PassedOver,
    left_out: LeftOut,
    *,
    failed: bool = False,
) -> int:
    """Report on all files and choose the exit status."""
    told = _tell_failures(results)
    context.errors.extend(told)
    failed = bool(told) or failed
    for line in (line for result in results for line in result.notes if not arguments.quiet):
        message(f"note: {line}")
    findings = sorted((f for result in results for f in result.findings), key=lambda finding: finding.sort_key)
    changed = [result for result in results if result.after is not None]
    context.checked = [result.path for result in results if not result.failures and result.error is None]
    if arguments.diff:
        from amplint.fix import unified_diff

        text = "".join(unified_diff(r.path, r.before, r.after) for r in changed if r.after is not None)
        _deliver_text(arguments, text)
    else:
        _report(arguments, findings, context)
    if not arguments.quiet:
        if results or not (failed or left_out.everything):
            _summarise(arguments, results, findings, changed, context)
        for line in left_out.summary(results):
            click.echo(line, err=True)
        left = passed_over.summary()
        if left is not None:
            click.echo(left, err=True)
    if failed:
        return FAILED
    found = any(not context.refuted(finding) for finding in findings) or (
        bool(changed) and (arguments.diff or arguments.exit_non_zero_on_fix)
    )
    return FOUND if found and not arguments.exit_zero else CLEAN


def _tell_failures(results: list[FileResult]) -> list[str]:
    """Say which files could not be checked, or made a rule fail; gives the lines."""
    lines = [line for result in results for line in (*result.failures, *([result.error] if result.error else ()))]
    for line in lines:
        error_message(line)
    return lines


def _report(arguments: Arguments, findings: list[Finding], context: Context) -> None:
    if arguments.statistics:
        _deliver_text(arguments, _statistics(findings, arguments.output_format))
        return
    to_stderr = arguments.fix and STDIN in arguments.paths
    context.columns = None if arguments.output_file is not None else terminal_columns(to_stderr=to_stderr)
    lines = render(arguments.output_format, findings, context)
    if arguments.output_file is not None:
        _deliver_text(arguments, plain(lines))
    else:
        print_lines(lines, to_stderr=to_stderr, color=arguments.color)


def _deliver_text(arguments: Arguments, text: str) -> None:
    if arguments.output_file is None and arguments.fix and not arguments.diff and STDIN in arguments.paths:
        click.echo(text, err=True, nl=False)
    else:
        deliver([text], arguments.output_file)


def _statistics(findings: list[Finding], output_format: str) -> str:
    counts = Counter((finding.code, finding.name) for finding in findings)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if output_format == "json":
        import json

        return json.dumps([{"code": c, "name": n, "count": count} for (c, n), count in rows], indent=2) + "\n"
    width = max((len(str(count)) for _, count in rows), default=0)
    return "".join(f"{count:>{width}}  {code}  {name}\n" for (code, name), count in rows)


def _summarise(
    arguments: Arguments,
    results: list[FileResult],
    findings: list[Finding],
    changed: list[FileResult],
    context: Context,
) -> None:
    """The last lines on stderr: what was fixed, what is left, what could be fixed, and what runs said."""
    fixed = sum(result.fixed for result in changed)
    if fixed:
        verb = "Would fix" if arguments.diff else "Fixed"
        click.echo(f"{verb} {counted(fixed, 'finding')} in {counted(len(changed), 'file')}.", err=True)
        _tell_cured(findings, context)
    if not results:
        click.echo("No Python files found.", err=True)
        return
    if not findings:
        if not any(result.failures or result.error for result in results):
            click.echo(f"All checks passed: {counted(len(results), 'file')}.", err=True)
        return
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    kinds = [counted(n, kind) for n, kind in ((errors, "error"), (len(findings) - errors, "warning")) if n]
    files = len({finding.filename for finding in findings})
    undone = _left_undone(arguments, results, findings, context)
    safe = sum(context.takes_fix(f) for f in findings if f not in undone)
    offered = (f for f in findings if f.fix is not None and f.fix.applicability is not Applicability.DISPLAY)
    unsafe = sum(f not in undone for f in offered) - safe
    fixable = [f"{safe} fixable with --fix"] if safe else []
    if unsafe:
        fixable.append(f"{unsafe} {'more with' if safe else 'fixable with --fix'} --unsafe-fixes")
    if undone:
        fixable.append(f"{len(undone)} with a fix that cures nothing or fails elsewhere, left undone")
    click.echo(
        f"Found {counted(len(findings), 'finding')} ({', '.join(kinds)}) in {files} of {counted(len(results), 'file')}"
        + (f"; {', '.join(fixable)}." if fixable else "."),
        err=True,
    )
    _tell_verdicts(findings, context)


def _left_undone(
    arguments: Arguments, results: list[FileResult], findings: list[Finding], context: Context
) -> list[Finding]:
    """What is left though its fix was tried: it leaves the finding in place, or brings others."""
    if not (arguments.fix or arguments.diff):
        return []
    settled = {result.path for result in results if not result.notes and result.error is None}
    return [
        finding
        for finding in findings
        if finding.filename in settled
        and (context.takes_fix(finding) or (arguments.unsafe_fixes and _is_unsafe(finding)))
    ]


def _is_unsafe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE


def _tell_cured(findings: list[Finding], context: Context) -> None:
    """What runs said of those that are no longer found."""
    left = {(finding.filename, finding.fingerprint) for finding in findings}
    gone = [proof for key, proof in (context.proofs or {}).items() if key not in left]
    if gone:
        from amplint.verify.proof import cured

        click.echo(cured(gone), err=True)


def _tell_verdicts(findings: list[Finding], context: Context) -> None:
    proofs = [proof for finding in findings if (proof := context.proof(finding)) is not None]
    if proofs:
        from amplint.verify.proof import told

        click.echo(told(proofs), err=True)
