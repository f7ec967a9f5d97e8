"""Options that several commands have: what to judge by, and the form of the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from amplint.config import Configurations, UsageError
from amplint.finding import Certainty, Severity
from amplint.frozen import dataclass
from amplint.infer.lattice.scenarios import DEVICES
from amplint.judging import Judging, check_format, judging_options
from amplint.report import FORMATS
from amplint.threshold import POSSIBLE

if TYPE_CHECKING:
    from amplint.config import Config

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class JudgingArguments:
    """What a command line says that files are judged by."""

    scenario: tuple[str, ...]
    device: str | None
    torch_version: str | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    pedantic: bool
    min_certainty: str | None
    min_severity: str | None
    config: str | None
    isolated: bool
    no_plugins: bool

    def judging(self, *, changed: Callable[[Config], Config] = lambda config: config, **options: Any) -> Judging:
        """What each file is judged by; ``options`` are more of :func:`judging_options`. Raises UsageError.

        ``changed`` is as :class:`Configurations` takes it.
        """
        for name in ("scenario", "device", "torch_version", "select", "ignore"):
            options[name] = getattr(self, name)
        options["min_certainty"] = self._least_certainty()
        options["min_severity"] = Severity(self.min_severity) if self.min_severity is not None else None
        return Judging(
            Configurations(only=self.config, isolated=self.isolated, changed=changed),
            lambda config, rules: judging_options(config, rules, **options),
            plugins=not (self.isolated or self.no_plugins),
        )

    def _least_certainty(self) -> Certainty | None:
        if self.pedantic and self.min_certainty not in (None, POSSIBLE.value):
            raise UsageError(
                f"--pedantic is --min-certainty possible: --min-certainty {self.min_certainty} contradicts it"
            )
        if self.pedantic:
            return POSSIBLE
        return Certainty(self.min_certainty) if self.min_certainty is not None else None


@dataclass(frozen=True, slots=True)
class ReportingArguments(JudgingArguments):
    """The same, and what a command that reports findings has besides."""

    output_format: str
    exit_zero: bool


def judging_command(*formats: str, configured: bool = False) -> Callable[[_F], _F]:
    """Give a command the options of :class:`ReportingArguments`, with the forms of its report.

    ``configured``: the form may be that of a configuration, see :func:`configured_format`.
    """
    exit_zero = click.option("--exit-zero", is_flag=True, help="Leave with status 0 even if something is found.")
    return lambda command: judged_by(format_option(*formats, configured=configured)(exit_zero(command)))


def judged_by(command: _F) -> _F:
    """Give a command the options of :class:`JudgingArguments`."""
    options = (
        _rules_option("--select", "Rules to use instead of the default ones: codes, prefixes or names, with commas."),
        _rules_option("--ignore", "Rules to leave out.", "--extend-ignore"),
        click.option(
            "--scenario", multiple=True, metavar="NAME", help="A way of running; may be repeated.  [default: auto]"
        ),
        click.option("--device", type=click.Choice(DEVICES), help="Whose cast policy to go by.  [default: cuda]"),
        torch_version_option,
        click.option("--pedantic", is_flag=True, help="Report what is merely possible too: --min-certainty possible."),
        _least_option("--min-certainty", Certainty, "How sure a finding has to be to count.  [default: likely]"),
        _least_option("--min-severity", Severity, "How grave a finding has to be to count.  [default: warning]"),
        config_option,
        isolated_option,
        no_plugins_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def _rules_option(name: str, text: str, *aliases: str) -> Callable[[_F], _F]:
    return click.option(name, *aliases, name.lstrip("-"), multiple=True, metavar="RULES", help=text)


def _least_option(name: str, levels: type[Certainty] | type[Severity], text: str) -> Callable[[_F], _F]:
    return click.option(name, type=click.Choice([level.value for level in levels]), help=text)


def format_option(*formats: str, configured: bool = False) -> Callable[[_F], _F]:
    """``--output-format``, whose first form is the default; where it may be ``configured``, None."""
    kinds, text = click.Choice(formats), "Form of the report."
    if configured:
        return click.option("--output-format", type=kinds, help=f"{text}  [default: {formats[0]}]")
    return click.option("--output-format", type=kinds, default=formats[0], show_default=True, help=text)


def configured_format(config: str | None, *, isolated: bool) -> str:
    """The form of a report that the configuration of the current folder, or the one given, asks for, else the first.

    Raises UsageError for a form that there is not, and for a configuration given that is not valid.
    """
    found = Configurations(only=config, isolated=isolated).of(Path.cwd())
    for part in found.parts if found is not None else ():
        check_format(part)
    return (found.output_format if found is not None else None) or FORMATS[0]


config_option = click.option(
    "--config", metavar="FILE", help="The configuration of all files, instead of the nearest to each."
)
isolated_option = click.option("--isolated", is_flag=True, help="Read no configuration file, and load no rule pack.")
no_plugins_option = click.option(
    "--no-plugins", is_flag=True, help="Load no rule pack; the built-in rules are always there."
)
torch_version_option = click.option(
    "--torch-version", metavar="X.Y", help="The torch to judge by.  [default: what the project requires]"
)
