"""What an epsilon guards from zero, where it need not: a default that nobody uses, a sum that is not small."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._surroundings import FunctionNode, Surroundings

_LEAST = 2.0**-24
_SHARES = frozenset(("sigmoid", "softmax"))


def is_overridden(tree: ast.Module, around: Surroundings, constant: ast.expr | None) -> bool:
    """Whether a constant is a parameter's default, and every construction or call in the file passes a number that
    float16 holds.

    The parameter is read where it is, or kept as an attribute by ``__init__``.
    """
    if isinstance(constant, ast.Attribute) and isinstance(constant.value, ast.Name) and constant.value.id == "self":
        owner = next((a for a in around.ancestors(constant) if isinstance(a, ast.ClassDef)), None)
        made = method(owner, "__init__") if owner is not None else None
        parameter = kept_as(made, constant.attr) if made is not None else None
        return owner is not None and made is not None and _all_pass(tree, owner.name, made, parameter, skip=1)
    function = around.function(constant) if isinstance(constant, ast.Name) else None
    if function is None or not isinstance(constant, ast.Name) or isinstance(around.parent(function), ast.ClassDef):
        return False
    return _all_pass(tree, function.name, function, constant.id, skip=0)


def sums_shares(around: Surroundings, node: ast.expr | None) -> bool:
    """Whether a tensor is a sum of probabilities: ``p.sum(-1)`` of a ``p`` that is made by a sigmoid or softmax."""
    if not isinstance(node, ast.Call) or around.called(node) != "sum":
        return False
    of = around.subject(node)
    if of is not None and is_share(around, of):
        return True
    function = around.function(node)
    if function is None or not isinstance(of, ast.Name):
        return False
    given = [n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and _gives(n, of.id)]
    return any(is_share(around, value) for value in given)


def is_share(around: Surroundings, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and around.called(node) in _SHARES


def _gives(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


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


def _all_pass(tree: ast.Module, name: str, function: FunctionNode, parameter: str | None, skip: int) -> bool:
    """Whether there are calls of a name in the file, and all pass a number for a parameter that has a default."""
    values = passed_by_calls(tree, name, function, parameter, skip)
    return bool(values) and all(map(_is_held, values))


def passed_by_calls(
    tree: ast.Module, name: str, function: FunctionNode, parameter: str | None, skip: int
) -> list[ast.expr | None]:
    """What each call of a name in the file passes for a parameter that has a default, None where it passes nothing;
    no calls for another parameter."""
    spec = function.args
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    defaults = {*positional[len(positional) - len(spec.defaults) :], *(a.arg for a in spec.kwonlyargs)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and last(n.func) == name]
    if parameter is None or parameter not in defaults:
        return []
    place = positional.index(parameter) - skip if parameter in positional else None
    return [passed(call, parameter, place) for call in calls]


def passed(call: ast.Call, parameter: str, place: int | None) -> ast.expr | None:
    """What a call passes for a parameter, by its name or at its place."""
    named = next((keyword.value for keyword in call.keywords if keyword.arg == parameter), None)
    return call.args[place] if named is None and place is not None and len(call.args) > place else named


def _is_held(node: ast.expr | None) -> bool:
    """A number written out that float16 does not round to zero."""
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value >= _LEAST


def last(node: ast.expr) -> str:
    """The last part of a name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def default_of(function: FunctionNode, parameter: str) -> ast.expr | None:
    """The default of a parameter, None where it has none."""
    spec = function.args
    positional = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    given: dict[str, ast.expr | None] = dict(zip(reversed(positional), reversed(spec.defaults), strict=False))
    given.update(zip((argument.arg for argument in spec.kwonlyargs), spec.kw_defaults, strict=True))
    return given.get(parameter)
