"""From the command line and the configuration to what is judged: rules, scenarios, cast policy, torch version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.config import Config, UsageError, parse_torch_version
from amplint.engine import Options
from amplint.infer.scenarios import DEVICES, Scenario, find_scenario, scenario_names
from amplint.plugins import load_rules, nearest, select_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.finding import Applicability


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
