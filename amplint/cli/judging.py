"""From the command line and the configuration to what is judged: rules, scenarios, cast policy, torch version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amplint.config import Config, Configurations, UsageError, parse_torch_version
from amplint.engine import Options
from amplint.infer.lattice.scenarios import DEVICES, Scenario, find_scenario, scenario_names
from amplint.plugins import load_rules, nearest, select_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from amplint.finding import Applicability


@dataclass(frozen=True, slots=True)
class Judged:
    """What one file is judged by, and the configuration that it comes from."""

    options: Options
    config: Config


class Judging:
    """What each file is judged by: ``options`` makes it of a configuration, and raises UsageError for a wrong one.

    ``plain`` is what the command line says alone; what is wrong there is not laid to a file.
    """

    def __init__(self, configurations: Configurations, options: Callable[[Config], Options]) -> None:
        self.plain = options(Config())
        self.configurations = configurations
        self._options = options
        self._by_file: dict[Path | None, Judged | None] = {}

    def of(self, folder: Path) -> Judged | None:
        """For the files of an absolute folder; None where their configuration is not valid, which its errors say."""
        config = self.configurations.of(folder)
        if config is None:
            return None
        if config.path not in self._by_file:
            try:
                self._by_file[config.path] = Judged(self._options(config), config)
            except UsageError as error:
                self.configurations.errors.append(f"{config.path}: {error}")
                self._by_file[config.path] = None
        return self._by_file[config.path]

    def valid(self, folder: Path) -> Judged:
        """The same. Raises UsageError where the configuration is not valid."""
        judged = self.of(folder)
        if judged is None:
            raise UsageError(self.configurations.errors[-1])
        return judged


def judging_options(
    config: Config,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    scenario: Sequence[str] = (),
    device: str | None = None,
    torch_version: str | None = None,
    pedantic: bool = False,
    fix: Applicability | None = None,
    write: bool = True,
) -> Options:
    """What is given on the command line wins over the configuration. Raises UsageError."""
    chosen, extend, left_out = split(select), split(extend_select), split(ignore)
    if not chosen:
        chosen, extend, left_out = config.select, (*config.extend_select, *extend), (*config.ignore, *left_out)
    version = torch_version or config.torch_version
    policy = device or config.device or "cuda"
    if policy not in DEVICES:
        raise UsageError(f"unknown device '{policy}'{nearest(policy, DEVICES)}")
    return Options(
        rules=select_rules(load_rules(), chosen, left_out, extend),
        scenarios=_scenarios(split(scenario) or config.scenarios),
        device=policy,
        torch_version=parse_torch_version(version) if version else None,
        pedantic=pedantic,
        fix=fix,
        write=write,
    )


def split(values: Sequence[str]) -> tuple[str, ...]:
    """Values that may be repeated and may hold commas."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _scenarios(names: Sequence[str]) -> tuple[Scenario, ...] | None:
    chosen: dict[str, Scenario] = {}
    for name in names:
        scenario = find_scenario(name)
        if scenario is None:
            known = scenario_names()
            raise UsageError(f"unknown scenario '{name}'{nearest(name, known) or '; known: ' + ', '.join(known)}")
        chosen[scenario.name] = scenario
    return tuple(chosen.values()) or None
