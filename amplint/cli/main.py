"""The ``amplint`` command and what its subcommands share: messages, colours, exit statuses."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from amplint import __version__
from amplint.cli.colour import When, coloured, console
from amplint.config import UsageError
from amplint.nearest import nearest
from amplint.report import Line, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

CLEAN, FOUND, FAILED = 0, 1, 2
"""Exit statuses: nothing to report, findings remain, wrong usage or internal failure."""
INTERRUPTED = 130
"""The exit status behind an interrupt from the keyboard."""

COMMANDS = {
    "check": "Find mixed-precision dtype hazards, and fix them.",
    "clean": "Remove what checks kept for later ones.",
    "dtypes": "Show the dtype of each tensor in the source.",
    "explain": "Explain a rule, an error text or a traceback.",
    "init": "Write a configuration for this folder, with what its code shows.",
    "preflight": "Check the machine, the packages and the precision settings before a run.",
    "report": "Write a minimal file that still gives a finding, to report a false alarm with.",
    "rules": "List the rules.",
    "server": "Show findings, fixes and dtypes in an editor.",
    "test-rules": "Run the examples of a rule pack.",
    "verify": "Run flagged modules, and say which findings a run confirms.",
}


class _LazyGroup(click.Group):
    """Imports a subcommand's module only when it is run: the start-up time of one is not that of all."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"amplint.cli.{name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise UsageError(f"unknown command '{name}'{nearest(name, COMMANDS) or '; known: ' + ', '.join(COMMANDS)}")
        return super().resolve_command(context, arguments)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except UsageError as error:
            fail(str(error))
        except click.UsageError as error:
            of = f"; {error.ctx.command_path} --help lists the options" if error.ctx is not None else ""
            fail(f"{error.format_message().rstrip('.').replace('. (', ' (')}{of}")
        except KeyboardInterrupt:
            message("interrupted")
            sys.unraisablehook = _say_nothing
            sys.exit(INTERRUPTED)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="amplint", message="%(prog)s %(version)s")
def main() -> None:
    """A linter for mixed precision in PyTorch.

    Infers the dtype of every tensor under each way of running in mixed precision and reports where the answer is a
    crash, a silent loss of accuracy, or a wasted cast. check reads code and never imports it; verify runs it.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _say_nothing(_: object) -> None:
    """What fails while an interrupted process ends, such as a pool whose processes are gone already, is no news."""


def message(text: str) -> None:
    """One line to stderr."""
    click.echo(f"amplint: {text}", err=True)


def error_message(text: str) -> None:
    """One line to stderr that says what went wrong."""
    message(f"error: {text}")


def fail(text: str) -> NoReturn:
    """Say what is wrong and leave with status 2."""
    error_message(text)
    sys.exit(FAILED)


def write_out(text: str) -> None:
    """Write to stdout. A reader that has gone away (``| head``) is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def deliver(pieces: Iterable[str], path: str | None) -> None:
    """Write a document to a file, or to stdout where none is named. Raises UsageError."""
    if path is None:
        for piece in pieces:
            write_out(piece)
        return
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_lines(lines: Iterable[Line], *, to_stderr: bool = False, color: When = "auto") -> None:
    """Print a report: in colour where :func:`coloured` says so, as plain text elsewhere; never wrapped."""
    stream = sys.stderr if to_stderr else sys.stdout
    if not coloured(stream, color):
        text = plain(lines)
        if to_stderr:
            click.echo(text, err=True, nl=False)
        else:
            write_out(text)
        return
    from rich.text import Text

    printer = console(stream)
    for line in lines:
        printer.print(Text.assemble(*line), soft_wrap=True)
