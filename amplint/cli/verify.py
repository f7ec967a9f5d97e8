"""``amplint verify``: run what ``check`` flags, and say which findings a run confirms."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from amplint.cli.main import CLEAN, FAILED, FOUND, error_message, message, print_lines, write_out
from amplint.cli.options import ReportingArguments, judging_command
from amplint.cli.running import Work, ending_in_order, hardware, repeated, require_torch, verify_all
from amplint.config import UsageError
from amplint.engine import check_file
from amplint.files import display_path, find_files
from amplint.frozen import dataclass
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.judging import Judged, Judging
    from amplint.verify.verification import Settings, Verified


@dataclass(frozen=True)
class Arguments(ReportingArguments):
    """The command line of one run, as given."""

    targets: tuple[str, ...]
    run_on: str
    fix_check: bool
    trace: str | None
    factory: str | None
    timeout: float
    memory: float


@click.command("verify")
@click.argument("targets", nargs=-1, required=True, metavar="TARGETS...")
@judging_command("full", "json")
@click.option(
    "--run-on",
    type=click.Choice(("auto", "cuda", "cpu")),
    default="auto",
    show_default=True,
    help="The hardware; on cpu, another device's policy is put over the CPU's kernels.",
)
@click.option("--fix-check", is_flag=True, help="Run again with the fixes applied, and say whether they cure.")
@click.option("--trace", type=click.Path(dir_okay=False), metavar="FILE", help="Write a page of every dtype change.")
@click.option("--factory", metavar="FILE.py::NAME", help="What builds the target: returns (module, args, kwargs).")
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=120, show_default=True, help="Seconds for each target."
)
@click.option("--memory", type=click.FloatRange(min=0.5), default=8, show_default=True, help="GiB for each target.")
def command(**arguments: Any) -> None:
    """Run the code that TARGETS name, and say which findings a run confirms.

    A target is a file or folder (what has an amplint_example or a finding), FILE.py::Class or FILE.py::function. Each
    runs in a process of its own, in every scenario, for training and for inference, and is compared with float32. This
    imports and runs your code.

    \b
    Exit status: 0 nothing confirmed, 1 something confirmed, 2 nothing could be run, wrong usage, unreadable path or
    internal failure.
    """
    with ending_in_order():
        status = run(Arguments(**arguments))
    sys.exit(status)


def run(arguments: Arguments) -> int:
    """Verify, report, and say the exit status. Raises UsageError."""
    require_torch("verify")
    pairs = [_split(text) for text in arguments.targets]
    judging = arguments.judging()
    factory = _factory(arguments, pairs)
    found, failed = _found(arguments, pairs, judging)
    targets, unread = _targets(
        found, judging, lambda given, judged: _settings(arguments, given, judged, factory or judged.config.factories)
    )
    failed |= unread
    verified = verify_all(targets)
    rows = [row for done in verified for row in done.rows]
    if arguments.output_format == "json":
        document = [row.to_json(fix_check=arguments.fix_check) for row in rows]
        write_out(json.dumps(document, indent=2) + "\n")
    else:
        from amplint.verify.report import render, summary

        print_lines(render(rows, {rule.code: rule.name for rule in judging.rules.values()}))
        if targets or not failed:
            click.echo(summary(rows) if targets else _NOTHING, err=True)
    if arguments.trace is not None:
        failed |= not _write_trace(Path(arguments.trace), verified)
    if failed or (rows and all(row.verdict in ("not-runnable", "needs-gpu") for row in rows)):
        return FAILED
    confirmed = any(row.verdict == "confirmed" for row in rows)
    return FOUND if confirmed and not arguments.exit_zero else CLEAN


_NOTHING = (
    "amplint: nothing to run: no finding, and no class with an amplint_example; name one class with FILE.py::Class"
)


def _settings(arguments: Arguments, given: Path, judged: Judged, factories: dict[str, str]) -> Settings:
    """How to verify the files of one configuration below a given path. Raises UsageError."""
    from amplint.verify.verification import Settings

    return Settings(
        options=replace(judged.options, scenarios=judged.options.judged),
        run_on=hardware(arguments.run_on, judged.options.device),
        root=(judged.config.root or (given if given.is_dir() else given.parent)).resolve(),
        factories=factories,
        fix_check=arguments.fix_check,
        trace=arguments.trace is not None,
        timeout=arguments.timeout,
        memory=int(arguments.memory * 2**30),
        given=repeated(arguments, factory=arguments.factory and _absolute(arguments.factory)),
    )


def _split(text: str) -> tuple[str, str | None]:
    """``FILE.py::Class`` as path and name."""
    path, separator, name = text.rpartition("::")
    return (path, name) if separator else (text, None)


def _absolute(factory: str) -> str:
    """A factory with the path of its file, if it names one, made absolute. Raises UsageError."""
    file, separator, name = factory.partition("::")
    if not separator:
        if ":" not in factory:
            raise UsageError(f"--factory {factory}: name a function as FILE.py::NAME or package.module:name")
        return factory
    if not Path(file).is_file():
        raise UsageError(f"--factory: no file {file}")
    return f"{Path(file).resolve()}::{name}"


def _factory(arguments: Arguments, pairs: list[tuple[str, str | None]]) -> dict[str, str]:
    """The factory given for the only target. Raises UsageError."""
    if arguments.factory is None:
        return {}
    names = [name for _, name in pairs if name is not None]
    if len(pairs) != 1 or not names:
        raise UsageError("--factory builds one target: name it as FILE.py::Class")
    return {names[0]: _absolute(arguments.factory)}


def _found(arguments: Arguments, pairs: list[tuple[str, str | None]], judging: Judging) -> tuple[list[_Found], bool]:
    """The files of each target, and whether a path or a configuration could not be read. Raises UsageError."""
    found = []
    errors = []
    for text, name in pairs:
        discovery = find_files([text], judging.configurations, force=name is None, notebooks=False)
        errors += discovery.errors
        if name is not None and not discovery.errors and not Path(text).is_file():
            raise UsageError(f"{text} is not a file: a target is FILE.py::Class")
        files = [file.path for file in discovery.files]
        found.append(_Found(text, name, [path for path in files if judging.of(path.parent) is not None]))
    errors += judging.configurations.errors
    for line in errors:
        error_message(line)
    judging.require(arguments.select, arguments.ignore)
    return found, bool(errors)


def _targets(
    found: list[_Found], judging: Judging, settings_of: Callable[[Path, Judged], Settings]
) -> tuple[list[Work], bool]:
    """The targets in the order of files, each with its settings, and whether something could not be read."""
    from amplint.verify.targets import outline, target_named, targets_of

    jobs: dict[str, Work] = {}
    failed = False
    for text, name, paths in found:
        for given in paths:
            settings = settings_of(Path(os.path.abspath(text)), judging.valid_file(given))
            path = given.resolve()
            result = check_file(path, replace(settings.options, each_place=True))
            for line in (*result.failures, *([result.error] if result.error else ())):
                error_message(line)
                failed = True
            try:
                shape = outline(Source(path, path.read_bytes()))
            except (SourceError, OSError) as error:
                if name is not None:
                    raise UsageError(f"cannot parse {text}: {error}") from error
                if Path(text).is_file() and isinstance(error, SourceError):
                    error_message(f"cannot parse {text}: {error}")
                    failed = True
                elif isinstance(error, SourceError):
                    message(f"{display_path(path)} is passed over: {error}")
                continue
            if name is None:
                made = targets_of(path, shape, result.findings)
            else:
                one = target_named(path, shape, name, result.findings)
                if one is None:
                    known = ", ".join([*shape.classes, *shape.functions][:8]) or "none"
                    raise UsageError(f"{text} has no class or function {name}; it has {known}")
                made = [one]
            jobs.update({str(target): Work(target, shape, settings) for target in made})
    return list(jobs.values()), failed


class _Found(NamedTuple):
    """A target as given: its path, the name in it, and the files there whose configuration is valid."""

    text: str
    name: str | None
    paths: list[Path]


def _write_trace(path: Path, verified: list[Verified]) -> bool:
    """Write the page; False where that fails."""
    from amplint.verify.timeline import render, sources_of

    timelines = [timeline for done in verified for timeline in done.timelines]
    if not timelines:
        message(f"nothing was run whole, so there is no page to write to {path}")
        return True
    try:
        path.write_text(render(timelines, sources_of(timelines)), encoding="utf-8")
    except OSError as error:
        error_message(f"cannot write {path}: {error.strerror or error}")
        return False
    return True
