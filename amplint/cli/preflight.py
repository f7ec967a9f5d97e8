"""``amplint preflight``: machines, versions and precision settings, before a run."""

from __future__ import annotations

import json
import sys

import click

from amplint.cli.main import CLEAN, FAILED, FOUND, counted, error_message, print_lines, write_out
from amplint.cli.options import format_option


@click.command("preflight")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option(
    "--gpu", "gpus", multiple=True, metavar="NAME", help='The GPU to judge for, such as "T4"; may be repeated.'
)
@click.option(
    "--python", metavar="PATH", help="The interpreter whose packages and torch to look at.  [default: this one]"
)
@format_option("full", "json")
@click.option("--exit-zero", is_flag=True, help="Leave with status 0 even if there are problems.")
def command(
    paths: tuple[str, ...], gpus: tuple[str, ...], python: str | None, output_format: str, exit_zero: bool
) -> None:
    """Check the machine, the installed packages and the precision settings in PATHS before a run.

    PATHS are scripts, YAML and JSON configurations (transformers, Accelerate, DeepSpeed, Lightning), requirement and
    lock files, and folders of them. Files named together are taken for one run. Scripts are read, never run; torch is
    asked in a process of its own.

    \b
    Exit status: 0 nothing to report, 1 problems, 2 wrong usage, unreadable path or internal failure.
    """
    from amplint.preflight.inspection import inspect
    from amplint.preflight.report import as_json, render

    report = inspect(paths, gpus, python)
    for line in report.errors:
        error_message(line)
    if output_format == "json":
        write_out(json.dumps(as_json(report), indent=2) + "\n")
    else:
        print_lines(render(report))
        found = counted(len(report.problems), "problem") if report.problems else ""
        click.echo(f"Found {found}." if found else "No problems found.", err=True)
    if report.errors:
        sys.exit(FAILED)
    sys.exit(FOUND if report.problems and not exit_zero else CLEAN)
