"""What the parameters of functions are given: by their defaults, and by the calls of a file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.names.annotations import last_name

if TYPE_CHECKING:
    from amplint.claims.surroundings import FunctionNode


def method(owner: ast.ClassDef, name: str) -> FunctionNode | None:
    """The method of a class that has a name."""
    return next((n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def kept_as(made: FunctionNode, attribute: str) -> str | None:
    """The parameter that ``self.attribute`` is set from, as it is."""
    for node in ast.walk(made):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr == attribute:
                    return node.value.id
    return None


def passed_by_calls(
    tree: ast.Module, name: str, function: FunctionNode, parameter: str | None, skip: int
) -> list[ast.expr | None]:
    """What each call of a name in the file passes for a parameter that has a default, None where it passes nothing;
    no calls for another parameter."""
    spec = function.args
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    defaults = {*positional[len(positional) - len(spec.defaults) :], *(a.arg for a in spec.kwonlyargs)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and last_name(n.func) == name]
    if parameter is None or parameter not in defaults:
        return []
    place = positional.index(parameter) - skip if parameter in positional else None
    return [passed(call, parameter, place) for call in calls]


def passed(call: ast.Call, parameter: str, place: int | None) -> ast.expr | None:
    """What a call passes for a parameter, by its name or at its place."""
    named = next((keyword.value for keyword in call.keywords if keyword.arg == parameter), None)
    return call.args[place] if named is None and place is not None and len(call.args) > place else named


def default_of(function: FunctionNode, parameter: str) -> ast.expr | None:
    """The default of a parameter, None where it has none."""
    spec = function.args
    positional = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    given: dict[str, ast.expr | None] = dict(zip(reversed(positional), reversed(spec.defaults), strict=False))
    given.update(zip((argument.arg for argument in spec.kwonlyargs), spec.kw_defaults, strict=True))
    return given.get(parameter)
