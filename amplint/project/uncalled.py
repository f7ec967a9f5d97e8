"""Functions that only their own file calls or applies, on branches that the inference found are never taken."""

from __future__ import annotations

import ast
from functools import lru_cache
from types import NoneType
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
    """Whether a line stands in such a function or autograd Function, which no package hands on.

    All that mentions it, but itself, calls or applies it, in a function that was followed to its end, also where the
    constants that another file sets may have any value.
    """
    target = ways.target(row)
    if isinstance(target, (ast.AsyncFunctionDef, NoneType)) or target.decorator_list:
        return False
    if not _is_never_called(facts, target):
        return False
    users = ways.users(facts.source, target.name)
    others = [file for file, mention in users or () if mention.definition is not target]
    if not others or any(file.path != facts.path for file in others) or ways.is_exported(facts.source, target.name):
        return False
    given = frozenset(filter(ways.is_given, constants(facts.source.tree)))
    return not given or _is_never_called(_with_open(facts, judging, given), target)


@lru_cache(maxsize=2)
def _with_open(facts: FileFacts, judging: Judging, given: frozenset[str]) -> FileFacts:
    """The facts of a file where constants of these names may have any value."""
    return judging.facts_where(Settled(given=given), facts.source)


@lru_cache(maxsize=8)
def _is_never_called(facts: FileFacts, target: Definition) -> bool:
    """Whether all uses of a function or class stand in functions that were followed, and none was seen to be made."""
    inside = range(target.lineno, (target.end_lineno or target.lineno) + 1)
    users = _users(facts.source.tree, target)
    if not users or any(user is None or not _is_followed(facts, user) for _, user in users):
        return False
    called = {_called(target, use) for use, _ in users}
    return None not in called and all(
        caller in inside for function in called if function for caller in facts.callers.get(function.lineno, ())
    )


def _users(tree: ast.Module, target: Definition) -> list[tuple[ast.expr | None, ast.AST | None]]:
    """What is called at each mention of a function or class, ``x`` or ``x.apply``, None where nothing is, and the
    innermost function around it; its own mentions of itself left out."""
    own = {id(node) for node in nodes_below(target)}
    named = {id(n): n for n in nodes_of_kind(tree, ast.Name) if n.id == target.name and id(n) not in own}
    calls = {id(n.func): n.func for n in nodes_of_kind(tree, ast.Call)}
    called = {id(f.value if isinstance(f, ast.Attribute) and f.attr == "apply" else f): f for f in calls.values()}
    around: dict[int, ast.AST] = {}
    for function in nodes_of_kind(tree, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda):
        around.update((id(node), function) for node in nodes_below(function) if id(node) in named)
    return [(called.get(name), around.get(name)) for name in named]


def _called(target: Definition, use: ast.expr | None) -> ast.FunctionDef | None:
    """The function that runs where a function or class is used, None where that is not known."""
    if not isinstance(target, ast.ClassDef):
        return target if isinstance(target, ast.FunctionDef) and isinstance(use, ast.Name) else None
    forward = (s for s in target.body if isinstance(s, ast.FunctionDef) and s.name == "forward")
    return next(forward, None) if isinstance(use, ast.Attribute) else None


def _is_followed(facts: FileFacts, function: ast.AST) -> bool:
    """Whether a function's body was followed, each time to its end."""
    named = isinstance(function, ast.FunctionDef) and function.lineno in facts.activations
    return named and id(function) not in facts.unfinished
