"""What an editor's settings say: the scenario whose dtypes are shown beside assignments."""

from __future__ import annotations

from amplint.config import UsageError
from amplint.infer.lattice.scenarios import Scenario, find_scenario, scenario_names
from amplint.nearest import nearest

SECTION = "amplint"
KEYS = ("scenario",)


def scenario_named(name: object) -> Scenario:
    """The scenario of a name or alias. Raises UsageError."""
    scenario = find_scenario(name) if isinstance(name, str) else None
    if scenario is None:
        known = scenario_names()
        hint = nearest(name, known) if isinstance(name, str) else ""
        raise UsageError(f"unknown scenario '{name}'{hint or '; known: ' + ', '.join(known)}")
    return scenario


def scenario_in(settings: object, *, ours: bool) -> Scenario | None:
    """The scenario that settings name, in a section ``amplint`` or by themselves; None where they name none.

    ``ours``: they were given to this server alone, so that whatever else they have is a mistake. Raises UsageError.
    """
    if not isinstance(settings, dict):
        return None
    section = settings.get(SECTION, settings if ours or any(key in settings for key in KEYS) else None)
    if section is None:
        return None
    if not isinstance(section, dict):
        raise UsageError(f"the setting '{SECTION}' must be a table with the key 'scenario'")
    for key in section:
        if key not in KEYS:
            raise UsageError(f"unknown setting '{key}'{nearest(key, KEYS) or '; known: ' + ', '.join(KEYS)}")
    named = section.get("scenario")
    return scenario_named(named) if named is not None else None
