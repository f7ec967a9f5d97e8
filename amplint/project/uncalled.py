"""Private functions that only their own file calls, each time on a branch that the inference found is never taken."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.infer.lattice.assumptions import Settled
from amplint.infer.syntax.behind_constants import constants
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.infer.state.facts import FileFacts
    from amplint.project.ends import Judging
    from amplint.project.mentions import Definition
    from amplint.project.ways import Ways


def is_uncalled(ways: Ways, facts: FileFacts, judging: Judging, row: int) -> bool:
    """Whether a line stands in such a function.

    All that mentions it, but itself, calls it, in a function that was followed to its end, also where the constants
    that another file sets may have any value.
    """
    target = ways.target(row)
    if not isinstance(target, ast.FunctionDef) or not _is_private(target) or not _is_never_called(facts, target):
        return False
    users = ways.users(facts.source, target.name)
    others = [(file, mention) for file, mention in users or () if mention.definition is not target]
    if not others or any(file.path != facts.path or not mention.called for file, mention in others):
        return False
    given = frozenset(filter(ways.is_given, constants(facts.source.tree)))
    return not given or _is_never_called(_with_open(facts, judging, given), target)


@lru_cache(maxsize=2)
def _with_open(facts: FileFacts, judging: Judging, given: frozenset[str]) -> FileFacts:
    """The facts of a file where constants of these names may have any value."""
    return judging.facts_where(Settled(given=given), facts.source)


def _is_never_called(facts: FileFacts, target: ast.FunctionDef) -> bool:
    """Whether all calls of a function stand in others that were followed, and none was seen to be made."""
    inside = range(target.lineno, (target.end_lineno or target.lineno) + 1)
    if any(caller not in inside for caller in facts.callers.get(target.lineno, ())):
        return False
    callers = _callers(facts.source.tree, target)
    return all(caller is not None and _is_followed(facts, caller) for caller in callers)


def _is_private(function: ast.FunctionDef) -> bool:
    return function.name.startswith("_") and not function.name.endswith("__") and not function.decorator_list


def _callers(tree: ast.Module, target: Definition) -> list[ast.AST | None]:
    """The innermost function around each call of a function, None for none; its own calls of itself left out."""
    own = {id(node) for node in nodes_below(target)}
    calls = {id(n) for n in nodes_of_kind(tree, ast.Call) if getattr(n.func, "id", "") == target.name} - own
    around: dict[int, ast.AST] = {}
    for function in nodes_of_kind(tree, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda):
        around.update((id(node), function) for node in nodes_below(function) if id(node) in calls)
    return [around.get(call) for call in calls]


def _is_followed(facts: FileFacts, function: ast.AST) -> bool:
    """Whether a function's body was followed, each time to its end."""
    named = isinstance(function, ast.FunctionDef) and function.lineno in facts.activations
    return named and id(function) not in facts.unfinished
