"""Branches and layers that an option of the constructor switches on, and every construction in the file leaves off."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.parameters import default_of, kept_as, method, passed
from amplint.infer.machine.guards import COMPARISONS
from amplint.infer.names.annotations import last_name

if TYPE_CHECKING:
    from amplint.claims.surroundings import FunctionNode, Surroundings

_NOTHING = "Identity"


def is_switched_off(tree: ast.Module, around: Surroundings, node: ast.AST) -> bool:
    """Whether a node is evaluated only where ``self.option`` passes a test that the default of the constructor's
    parameter fails, and the file leaves every object that default: ``if self.drop > 0`` with ``drop=0.0``.

    The file has to construct the class: what only others construct, they construct with its options.
    """
    owner = next((a for a in around.ancestors(node) if isinstance(a, ast.ClassDef)), None)
    made = method(owner, "__init__") if owner is not None else None
    if owner is None or made is None:
        return False
    for test, answer in around.tests(node):
        option = _option(test)
        parameter = kept_as(made, option) if option is not None else None
        if option is None or parameter is None or _holds(test, default_of(made, parameter)) is not (not answer):
            continue
        if not _is_set_again(tree, owner, option) and _all_leave(tree, owner.name, made, parameter):
            return True
    return False


def is_projection_left_off(tree: ast.Module, around: Surroundings, node: ast.AST) -> bool:
    """Whether a node calls a layer of ``self`` that is made only where two sizes differ, one of which is the other's
    unless an option says otherwise, which every construction in the file leaves off.

    ``self.proj = nn.Linear(inner, size) if size != inner else nn.Identity()``, where ``size`` is
    ``inner if dim is None else dim``.
    """
    called = node.func if isinstance(node, ast.Call) else None
    owner = next((a for a in around.ancestors(node) if isinstance(a, ast.ClassDef)), None)
    made = method(owner, "__init__") if owner is not None else None
    if not isinstance(called, ast.Attribute) or owner is None or made is None:
        return False
    layer = _only_given(made, called)
    test = _traced(made, layer.test) if isinstance(layer, ast.IfExp) else None
    if not isinstance(layer, ast.IfExp) or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    others = {ast.NotEq: layer.orelse, ast.Eq: layer.body}
    other = others.get(type(test.ops[0]))
    if not isinstance(other, ast.Call) or last_name(other.func) != _NOTHING:
        return False
    options = {_filled_in(_traced(made, side)) for side in (test.left, *test.comparators)} - {None}
    return any(_is_none(default_of(made, p)) and _all_leave(tree, owner.name, made, p) for p in options if p)


def _traced(made: FunctionNode, node: ast.expr) -> ast.expr:
    """What a variable or attribute of the constructor is given, where it is given one thing."""
    return _only_given(made, node) or node


def _only_given(made: FunctionNode, node: ast.expr) -> ast.expr | None:
    """What the constructor assigns to a name or attribute, where it does so once."""
    shown = ast.unparse(node)
    given = [
        n.value
        for n in ast.walk(made)
        if isinstance(n, ast.Assign) and any(ast.unparse(target) == shown for target in n.targets)
    ]
    return given[0] if len(given) == 1 else None


def _filled_in(node: ast.expr) -> str | None:
    """``option`` of ``size if option is None else option`` and of ``option or size``."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and isinstance(node.values[0], ast.Name):
        return node.values[0].id
    if not isinstance(node, ast.IfExp) or not isinstance(node.test, ast.Compare):
        return None
    asked = node.test.left
    if not isinstance(asked, ast.Name) or not _is_none(node.test.comparators[0]):
        return None
    kept = {ast.Is: node.orelse, ast.IsNot: node.body}.get(type(node.test.ops[0]))
    return asked.id if isinstance(kept, ast.Name) and kept.id == asked.id else None


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _option(test: ast.expr) -> str | None:
    """The attribute of ``self`` that a test compares with a constant, or asks for its truth."""
    asked = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else test
    of_self = isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == "self"
    return asked.attr if of_self and isinstance(asked, ast.Attribute) else None


def _holds(test: ast.expr, default: ast.expr | None) -> bool | None:
    """How a test comes out for a default that is a number; None where it cannot be told."""
    if not isinstance(default, ast.Constant) or not isinstance(default.value, bool | int | float):
        return None
    if not isinstance(test, ast.Compare):
        return bool(default.value)
    compare, other = COMPARISONS.get(type(test.ops[0])), test.comparators[0]
    if compare is None or isinstance(test.ops[0], ast.In | ast.NotIn):
        return None
    if not isinstance(other, ast.Constant) or not isinstance(other.value, bool | int | float):
        return None
    return bool(compare(default.value, other.value))


def _is_set_again(tree: ast.Module, owner: ast.ClassDef, option: str) -> bool:
    """Whether a class sets such an attribute twice, or something in the file sets it for another object."""

    def stores(node: ast.AST) -> list[ast.Attribute]:
        attributes = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr == option]
        return [n for n in attributes if isinstance(n.ctx, ast.Store)]

    others = [n for n in stores(tree) if not isinstance(n.value, ast.Name) or n.value.id != "self"]
    return len(stores(owner)) != 1 or bool(others)


def _all_leave(tree: ast.Module, name: str, made: FunctionNode, parameter: str) -> bool:
    """Whether the file constructs a class, never with a value for a parameter, and has no class made of it."""
    positional = [argument.arg for argument in (*made.args.posonlyargs, *made.args.args)]
    place = positional.index(parameter) - 1 if parameter in positional else None
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(last_name(base) == name for base in node.bases):
            return False
        if isinstance(node, ast.Call) and last_name(node.func) == name:
            calls.append(node)
    return bool(calls) and not any(_may_pass(call, parameter, place) for call in calls)


def _may_pass(call: ast.Call, parameter: str, place: int | None) -> bool:
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    packed = any(keyword.arg is None for keyword in call.keywords)
    return starred or packed or passed(call, parameter, place) is not None
