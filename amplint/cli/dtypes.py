"""``amplint dtypes``: the dtype of every expression of some files, under one scenario."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from amplint.annotate.failing import Failing, failing
from amplint.annotate.rows import FileDtypes, file_dtypes
from amplint.cli.main import CLEAN, FAILED, counted, deliver, error_message, message, print_lines
from amplint.cli.options import config_option, format_option, torch_version_option
from amplint.config import Configurations, UsageError
from amplint.engine import DEBUG_VARIABLE, check_file
from amplint.files import display_path, find_files
from amplint.frozen import dataclass
from amplint.infer.lattice.scenarios import CONTROL, DEVICES, SCENARIOS, Scenario, scenario_names
from amplint.judging import AUTO, Judging, judging_options, split
from amplint.report import Line, plain
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amplint.engine import Options


@dataclass(frozen=True, slots=True)
class Arguments:
    """The command line of one run, as given."""

    files: tuple[str, ...]
    scenario: str | None
    device: str | None
    torch_version: str | None
    config: str | None
    output_format: str
    output_file: str | None


@click.command("dtypes")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--scenario", metavar="NAME", help="The way of running to show; with html, the first to be shown.")
@click.option("--device", metavar="|".join(DEVICES), help="Whose autocast policy to infer by.  [default: cuda]")
@torch_version_option
@config_option
@format_option("text", "json", "html")
@click.option("--output-file", type=click.Path(dir_okay=False), help="Write the result there instead of to stdout.")
def command(**arguments: Any) -> None:
    """Show the dtype of each tensor in FILE... (files and folders) under one scenario, without running them.

    text is the source with a comment on each line that says what happens to dtypes there, and a mark under what fails;
    html is a page of the source coloured by dtype, with where each was decided, what fails, and a switch between all
    scenarios; json lists every expression.

    \b
    Exit status: 0, or 2 for wrong usage, a file that cannot be read or parsed, or internal failure.
    """
    sys.exit(run(Arguments(**arguments)))


def run(arguments: Arguments) -> int:
    """Infer, show, and say the exit status. Raises UsageError."""
    names = split([arguments.scenario] if arguments.scenario is not None else [])
    if len(names) != 1 or names == (AUTO,):
        raise UsageError(f"dtypes shows one scenario: give --scenario NAME; known: {', '.join(scenario_names())}")
    judging = Judging(
        Configurations(only=arguments.config),
        lambda config, rules: judging_options(
            config, rules, scenario=names, device=arguments.device, torch_version=arguments.torch_version
        ),
        plugins=False,
    )
    found = find_files(arguments.files, judging.configurations, notebooks=False)
    judged = [(file.path, judging.of(file.path.parent)) for file in found.files]
    shown = [(path, by.options) for path, by in judged if by is not None]
    errors = [*found.errors, *judging.configurations.errors]
    for line in errors:
        error_message(line)
    if not shown and not errors:
        click.echo("No Python files found.", err=True)
    (scenario,) = judging.plain.judged
    scenarios = SCENARIOS if arguments.output_format == "html" else tuple(dict.fromkeys((CONTROL, scenario)))
    files = _Files(shown, scenarios, marked=arguments.output_format != "json")
    if arguments.output_format == "text":
        _show_text(arguments, files, scenario)
        if files.total:
            share = f"{files.known:,} of {counted(files.total, 'expression')}"
            message(f"{scenario.name}: the dtype is known of {share} that may be tensors")
    else:
        deliver(_document(arguments, files, scenario), arguments.output_file)
    return FAILED if errors or files.failed else CLEAN


class _Files:
    """The files to show, with what fails in them if ``marked``.

    When all are done, ``failed`` says whether one could not be shown, ``known`` of how many of their ``total``
    expressions the dtype is known in the last scenario.
    """

    def __init__(
        self, judged: Sequence[tuple[Path, Options]], scenarios: tuple[Scenario, ...], *, marked: bool
    ) -> None:
        self.options = dict(judged)
        self.scenarios = scenarios
        self.marked = marked
        self.failed = False
        self.known = self.total = 0

    def __iter__(self) -> Iterator[FileDtypes]:
        for path, options in self.options.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    file = self._infer(path, options)
            except _Unshown as error:
                error_message(str(error))
                self.failed = True
            else:
                known, total = file.known(len(self.scenarios) - 1)
                self.known, self.total = self.known + known, self.total + total
                yield file

    def _infer(self, path: Path, options: Options) -> FileDtypes:
        try:
            source = Source(path, path.read_bytes())
            newest = options.torch_for(path).newest
            file = file_dtypes(source, scenarios=self.scenarios, device=options.device, torch_version=newest)
            return replace(file, failing=self._failing(source, options)) if self.marked else file
        except OSError as error:
            raise _Unshown(f"cannot read {path}: {error.strerror or error}") from error
        except SourceError as error:
            at = f"{display_path(path)}:{error.location.row}:{error.location.column}"
            raise _Unshown(f"{at}: cannot be parsed: {error.message}") from error
        except RecursionError as error:
            raise _Unshown(f"{display_path(path)}: nested too deeply to be analysed") from error
        except Exception as error:
            told = f"internal error in the inference on {path}: {type(error).__name__}: {error}".replace("\n", " ")
            if os.environ.get(DEBUG_VARIABLE):
                told += "\n" + "".join(traceback.format_exception(error)).rstrip()
            raise _Unshown(told) from error

    def _failing(self, source: Source, options: Options) -> tuple[Failing, ...]:
        asked = tuple(scenario for scenario in self.scenarios if scenario != CONTROL)
        if not asked:
            return ()
        result = check_file(source, replace(options, scenarios=asked, each_place=True))
        for line in result.failures:
            error_message(line)
            self.failed = True
        return failing(result.findings, self.scenarios)


class _Unshown(Exception):
    """One file cannot be shown: the line that says why."""


def _show_text(arguments: Arguments, files: _Files, scenario: Scenario) -> None:
    """Each file as soon as it is done; a header where there are several."""
    from amplint.annotate.text import render

    lane = files.scenarios.index(scenario)

    def shown(file: FileDtypes) -> list[Line]:
        path = file.source.path
        header = f"# {display_path(path)}: {scenario.name}, device {files.options[path].device}"
        return [[(header, "bold")], *render(file, lane), []] if len(files.options) > 1 else list(render(file, lane))

    if arguments.output_file is not None:
        deliver((plain(shown(file)) for file in files), arguments.output_file)
        return
    for file in files:
        print_lines(shown(file))


def _document(arguments: Arguments, files: _Files, scenario: Scenario) -> Iterator[str]:
    """One document of all files, which states one device. Raises UsageError where they have several."""
    devices = sorted({options.device for options in files.options.values()}) or [arguments.device or "cuda"]
    if len(devices) > 1:
        raise UsageError(f"the files' configurations name several devices ({', '.join(devices)}): give --device")
    if arguments.output_format == "json":
        from amplint.annotate import document

        yield from document.render(files, scenario, devices[0])
    else:
        from amplint.annotate import page

        yield page.render(list(files), files.scenarios, scenario, devices[0])
