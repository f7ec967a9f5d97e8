"""Whether other files of a project pass what makes an operation fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.conflict import Conflict
from amplint.infer.lattice.scenarios import find_scenario
from amplint.infer.state.facts import Kind

if TYPE_CHECKING:
    import ast

    from amplint.claims.suspect import Suspect
    from amplint.project.mentions import Definition
    from amplint.project.ways import Ways
    from amplint.source import Source

MAX_FILES = 6
"""Files that lead to a claim and are analysed for it."""


def passed_by_none(ways: Ways, suspect: Suspect) -> bool:
    """Whether a claim of what callers may pass to where autocast is off holds for no caller in the project.

    Asked are the files that use the definition that the operation stands in, and those that use what uses it; and, of
    the claim's scenarios, those with autocast, if it has any: in the others it is not left.
    """
    conflict = suspect.data
    if not isinstance(conflict, Conflict) or conflict.kind is not Kind.AUTOCAST_EXIT or not conflict.by_callers:
        return False
    scenarios = {name for name in suspect.scenarios if _has_autocast(name)} or {*suspect.scenarios}
    there = conflict.elsewhere
    path, row = (there.filename, there.span.start.row) if there is not None else (ways.path, conflict.node.lineno)
    return not any(
        failure.path == path and failure.row == row and failure.scenario in scenarios
        for user in _users(ways, suspect.span.start.row)
        for failure in ways.brings_about(user)
    )


def _has_autocast(name: str) -> bool:
    scenario = find_scenario(name)
    return scenario is not None and bool(scenario.autocast)


def _users(ways: Ways, row: int) -> list[Source]:
    """The other files that lead to a line, those nearest to it first."""
    target = ways.target(row)
    pending: list[tuple[Source, Definition]] = [(ways.file, target)] if target is not None else []
    seen: set[ast.AST] = set()
    found: list[Source] = []
    while pending and len(found) < MAX_FILES:
        file, target = pending.pop(0)
        if target in seen:
            continue
        seen.add(target)
        for user, mention in ways.users(file, target.name) or ():
            if mention.definition is not None:
                pending.append((user, mention.definition))
                found += [user] if user != ways.file and user not in found else []
    return found[:MAX_FILES]
