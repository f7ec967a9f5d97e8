"""The command line by which a finding shows in a file that stands alone."""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING

from amplint import __version__
from amplint.config import Config
from amplint.frozen import dataclass
from amplint.judging import judging_options
from amplint.plugins import select_rules
from amplint.unparsable import UNPARSABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amplint.engine import Options
    from amplint.finding import Finding
    from amplint.rule_base import Announced


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of ``amplint check``, besides ``--isolated``."""

    select: tuple[str, ...]
    extend_select: tuple[str, ...]
    scenario: tuple[str, ...]
    device: str
    torch_version: str
    pedantic: bool

    def options(self, rules: Sequence[Announced]) -> Options:
        """What is judged under these settings."""
        return judging_options(
            Config(),
            rules,
            select=self.select,
            extend_select=self.extend_select,
            scenario=self.scenario,
            device=self.device,
            torch_version=self.torch_version,
            pedantic=self.pedantic,
        )

    def command(self, name: str, *, isolated: bool) -> str:
        """What to type."""
        values = [
            ("--select", ",".join(self.select)),
            ("--extend-select", ",".join(self.extend_select)),
            *(("--scenario", name) for name in self.scenario),
            ("--device", self.device if self.device != "cuda" else ""),
            ("--torch-version", self.torch_version),
        ]
        given = [part for option, value in values if value for part in (option, value)]
        switches = [*(["--isolated"] if isolated else []), *(["--pedantic"] if self.pedantic else [])]
        return shlex.join(["amplint", "check", *switches, *given, name])


def candidates(finding: Finding, path: Path, options: Options, rules: Sequence[Announced]) -> Iterator[Settings]:
    """Settings that may show a finding in a file of its own, those that say least first."""
    torch = options.torch_for(path)
    select, extend = _selectors(options, rules)
    named = tuple(scenario.name for scenario in options.scenarios or ())
    for scenarios in dict.fromkeys((named, finding.scenarios)):
        for release in dict.fromkeys((torch.newest, torch.oldest)):
            yield Settings(
                select, extend, scenarios, options.device, ".".join(map(str, release)), pedantic=options.pedantic
            )


def _selectors(options: Options, rules: Sequence[Announced]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """``--select`` and ``--extend-select`` for the rules that are on."""
    on = {rule.code for rule in options.rules}
    default = {rule.code for rule in select_rules(rules, (), ())}
    by_name = options.asked if options.scenarios is None else frozenset()
    if default <= on and by_name <= on:
        return (), tuple(sorted((on - default) | by_name))
    return tuple(sorted(on - {UNPARSABLE.code})), ()


def versions() -> str:
    """Those of amplint and what it runs with."""
    return f"amplint {__version__}, Python {platform.python_version()}, libcst {version('libcst')}, {platform.system()}"
