"""Private functions that only their own file calls, each time on a branch that the inference found is never taken."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.syntax.behind_constants import constants
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.infer.state.facts import FileFacts
    from amplint.project.mentions import Definition
    from amplint.project.ways import Ways


def is_uncalled(ways: Ways, facts: FileFacts, row: int) -> bool:
    """Whether a line stands in such a function.

    All that mentions it, but itself, calls it, in a function that was followed to its end. What another file may set a
    constant of this one to, the inference does not know.
    """
    target = ways.target(row)
    if not isinstance(target, ast.FunctionDef) or not _is_private(target):
        return False
    inside = range(target.lineno, (target.end_lineno or target.lineno) + 1)
    if any(caller not in inside for caller in facts.callers.get(target.lineno, ())):
        return False
    users = ways.users(facts.source, target.name)
    others = [(file, mention) for file, mention in users or () if mention.definition is not target]
    if not others or any(file.path != facts.path or not mention.called for file, mention in others):
        return False
    callers = _callers(facts.source.tree, target)
    if any(caller is None or not _is_followed(facts, caller) for caller in callers):
        return False
    return not any(map(ways.is_given, constants(facts.source.tree)))


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
