"""From what is asked for and the configuration to what is judged: rules, scenarios, cast policy, torch version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.config import Config, Configurations, UsageError, find_config, parse_torch_version
from amplint.engine import Options
from amplint.finding import Applicability, Certainty, Severity
from amplint.frozen import dataclass
from amplint.infer.lattice.scenarios import DEVICES, Scenario, find_scenario, scenario_names
from amplint.nearest import nearest
from amplint.plugins import (
    check_selectors,
    installed_packs,
    known_rules,
    load_rules,
    named,
    named_packs,
    select_rules,
    unmatched,
)
from amplint.report import FORMATS
from amplint.threshold import POSSIBLE, UNASKED, Threshold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amplint.rule_base import Announced, Rule

AUTO = "auto"
"""Names the scenarios of a run in which none is named."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What one file is judged by, and the configuration that it comes from."""

    options: Options
    config: Config


class Judging:
    """What each file is judged by: ``options`` makes it of a configuration and all rules known under it.

    ``plain`` is what the command line says alone; what is wrong there is not laid to a file. ``rules`` are all those
    known under any configuration so far, by code. Without ``plugins`` they are the built-in ones, and a configuration
    may mention others. Raises UsageError for what is wrong with the command line or an installed pack.
    """

    def __init__(
        self,
        configurations: Configurations,
        options: Callable[[Config, tuple[Announced, ...]], Options],
        *,
        plugins: bool = True,
    ) -> None:
        self.configurations = configurations
        self.rules: dict[str, Announced] = {}
        self._options = options
        self._plugins = plugins
        self._installed = installed_packs() if plugins else ()
        self._by_file: dict[Path | None, Judged | None] = {}
        self._narrowed: dict[tuple[Path | None, tuple[str, ...]], Judged] = {}
        self.plain = self._judged(Config()).options

    def of_file(self, path: Path) -> Judged | None:
        """For a file of an absolute path; None where its configuration is not valid, which its errors say."""
        judged = self.of(path.parent)
        if judged is None:
            return None
        codes = judged.config.ignored_in(path)
        if not codes:
            return judged
        key = (judged.config.path, codes)
        if key not in self._narrowed:
            options = replace(judged.options, rules=unmatched(judged.options.rules, codes))
            self._narrowed[key] = replace(judged, options=options)
        return self._narrowed[key]

    def of(self, folder: Path) -> Judged | None:
        """For an absolute folder, whatever does not count in some of its files."""
        config = self.configurations.of(folder)
        if config is None:
            return None
        if config.path not in self._by_file:
            try:
                self._by_file[config.path] = self._judged(config)
            except UsageError as error:
                if str(error) not in self.configurations.errors:
                    self.configurations.errors.append(str(error))
                self._by_file[config.path] = None
        return self._by_file[config.path]

    def valid(self, folder: Path) -> Judged:
        """The same. Raises UsageError where the configuration is not valid."""
        judged = self.of(folder)
        if judged is None:
            raise UsageError(self.configurations.errors[-1])
        return judged

    def valid_file(self, path: Path) -> Judged:
        """For a file of an absolute path. Raises UsageError where its configuration is not valid."""
        self.valid(path.parent)
        judged = self.of_file(path)
        assert judged is not None
        return judged

    def require(self, *selectors: Sequence[str]) -> None:
        """Raise UsageError for a selector of the command line that matches no rule known so far."""
        check_selectors(self.rules.values(), split([value for values in selectors for value in values]))

    def _judged(self, config: Config) -> Judged:
        packs = (*self._installed, *named_packs(config)) if self._plugins else ()
        rules = known_rules(packs)
        for part in config.parts:
            self._check_part(part, rules)
        options = replace(self._options(config, rules), known=rules if self._plugins else None)
        judged = Judged(options, config)
        for rule in rules:
            self.rules.setdefault(rule.code, rule)
        return judged

    def _check_part(self, part: Config, rules: tuple[Announced, ...]) -> None:
        """Raise UsageError, which names the file, for what one file of a configuration has wrong."""
        check_format(part)
        try:
            if self._plugins:
                check_selectors(rules, part.selectors)
            self._options(part, rules)
        except UsageError as error:
            raise UsageError(f"{part.path}: {error}") from error


def check_format(config: Config) -> None:
    """Raise UsageError for a form of report that there is not."""
    name = config.output_format
    if name is not None and name not in FORMATS:
        hint = nearest(name, FORMATS) or f"; known: {', '.join(FORMATS)}"
        raise UsageError(f"{config.path}: unknown output format '{name}'{hint}")


def rules_here(*, plugins: bool) -> tuple[Rule, ...]:
    """Every rule known in the current folder, on or off. Raises UsageError."""
    if not plugins:
        return load_rules()
    return load_rules((*installed_packs(), *named_packs(find_config(Path.cwd()))))


def judged_in(folder: Path, *, scenario: Sequence[str] = (), device: str | None = None) -> Judged:
    """What the configuration of an absolute folder judges by. Raises UsageError."""
    judging = Judging(
        Configurations(), lambda config, rules: judging_options(config, rules, scenario=scenario, device=device)
    )
    return judging.valid(folder)


def judging_options(
    config: Config,
    rules: Sequence[Announced],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    scenario: Sequence[str] = (),
    device: str | None = None,
    torch_version: str | None = None,
    pedantic: bool = False,
    min_certainty: Certainty | None = None,
    min_severity: Severity | None = None,
    fix: Applicability | None = None,
    write: bool = True,
    apart: bool = False,
) -> Options:
    """What is given on the command line wins over the configuration. Raises UsageError.

    ``pedantic`` is a ``min_certainty`` of possible. Where there is a ``fix``, the configuration may allow unsafe ones.
    """
    chosen, extend, left_out = split(select), split(extend_select), split(ignore)
    if not chosen:
        chosen, extend = config.select, (*config.extend_select, *extend)
        left_out = (*config.ignore, *config.extend_ignore, *left_out)
    version = torch_version or config.torch_version
    policy = device or config.device or "cuda"
    if policy not in DEVICES:
        raise UsageError(f"unknown device '{policy}'{nearest(policy, DEVICES)}")
    certainty = POSSIBLE if pedantic else min_certainty or config.min_certainty or UNASKED
    if fix is not None and config.unsafe_fixes:
        fix = Applicability.UNSAFE
    return Options(
        rules=select_rules(rules, chosen, left_out, extend),
        scenarios=_scenarios(split(scenario) or config.scenarios),
        device=policy,
        torch_version=parse_torch_version(version) if version else None,
        pedantic=certainty is POSSIBLE,
        threshold=Threshold(certainty, min_severity or config.min_severity or Severity.WARNING),
        asked=frozenset(rule.code for rule in rules) if scenario else named(rules, (*chosen, *extend)),
        fix=fix,
        write=write,
        apart=apart,
    )


def split(values: Sequence[str]) -> tuple[str, ...]:
    """Values that may be repeated and may hold commas."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _scenarios(names: Sequence[str]) -> tuple[Scenario, ...] | None:
    """The scenarios of these names; None for those of a run in which none is named."""
    if AUTO in names and len(set(names)) > 1:
        raise UsageError(f"scenario '{AUTO}' stands for the default ones, each where the code runs so: name it alone")
    chosen: dict[str, Scenario] = {}
    names = [name for name in names if name != AUTO]
    for name in names:
        scenario = find_scenario(name)
        if scenario is None:
            known = (*scenario_names(), AUTO)
            raise UsageError(f"unknown scenario '{name}'{nearest(name, known) or '; known: ' + ', '.join(known)}")
        chosen[scenario.name] = scenario
    return tuple(chosen.values()) or None
