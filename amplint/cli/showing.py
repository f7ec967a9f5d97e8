"""``check --show-files`` and ``--show-settings``: what a run would look at, and what holds for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from amplint.cli.in_force import groups
from amplint.cli.main import counted, write_out
from amplint.files import display_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.cli.in_force import Group
    from amplint.cli.options import ReportingArguments
    from amplint.engine import Task
    from amplint.judging import Judging
    from amplint.passed_over import PassedOver
    from amplint.patterns import Patterns


def show_files(tasks: Sequence[Task], passed_over: PassedOver, *, quiet: bool) -> None:
    """The files on stdout, one a line; on stderr what is passed over, with the reason."""
    write_out("".join(f"{display_path(task.path)}\n" for task in tasks))
    for passed, number in sorted(passed_over.counts.items()) if not quiet else ():
        if number:
            below = f"/ ({counted(number, 'file')})" if passed.path.is_dir() else ""
            because = f", by {passed.because}" if passed.because else ""
            click.echo(f"{display_path(passed.path)}{below} is passed over: {passed.reason}{because}", err=True)


def show_settings(arguments: ReportingArguments, tasks: Sequence[Task], judging: Judging) -> None:
    """One paragraph for the files that are judged alike, or one object of a JSON list."""
    settings = [_settings(group) for group in groups(tasks, judging, arguments)]
    if arguments.output_format == "json":
        write_out(json.dumps(settings, indent=2) + "\n")
        return
    if not settings:
        click.echo("No Python files found.", err=True)
    write_out("\n".join(_text(one) for one in settings))


def _settings(group: Group) -> dict[str, Any]:
    config, options, torch = group.judged.config, group.judged.options, group.torch
    return {
        "project": str(group.project),
        "files": group.files,
        "configuration": [str(part.path) for part in config.parts],
        "rules": [rule.code for rule in options.rules],
        "per-file-ignores": {pattern: list(one.codes) for pattern, one in config.per_file_ignores.items()},
        "scenarios": [scenario.name for scenario in options.judged],
        "scenarios-why": group.scenarios.partition("; ")[2],
        "device": options.device,
        "torch": [".".join(map(str, release)) for release in dict.fromkeys((torch.oldest, torch.newest))],
        "torch-why": group.releases.partition(", ")[2],
        "min-certainty": options.threshold.certainty.value,
        "min-severity": options.threshold.severity.value,
        "unsafe-fixes": config.unsafe_fixes,
        "baseline": str(config.baseline) if config.baseline is not None else None,
        "exclude": _patterns(config.exclude),
        "extend-exclude": _patterns(config.extend_exclude),
        "force-exclude": config.force_exclude,
        "respect-gitignore": config.respect_gitignore,
        "plugins": list(config.plugins),
        "factories": config.factories,
        "output-format": group.arguments.output_format,
    }


def _patterns(stated: Iterable[Patterns]) -> list[str]:
    return [line for one in stated for line in one.lines]


def _text(settings: dict[str, Any]) -> str:
    lines: list[str] = []
    for key, value in settings.items():
        if key.endswith("-why"):
            lines[-1] += f" ({value})"
        else:
            lines.append(f"{key}: {_shown(key, value)}")
    return "\n  ".join(lines) + "\n"


def _shown(key: str, value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        value = [f"{name} -> {', '.join(of) if isinstance(of, list) else of}" for name, of in value.items()]
    if not isinstance(value, list):
        return display_path(Path(value)) if key == "project" and isinstance(value, str) else str(value)
    if key == "torch":
        return " to ".join(value)
    return ", ".join(display_path(Path(item)) if key == "configuration" else item for item in value) or "none"
