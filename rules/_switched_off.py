"""Branches that an option of the constructor switches on, which every construction in the file leaves off."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.guards import COMPARISONS

from ._guarded import default_of, kept_as, last, method, passed

if TYPE_CHECKING:
    from ._surroundings import FunctionNode, Surroundings


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
        if isinstance(node, ast.ClassDef) and any(last(base) == name for base in node.bases):
            return False
        if isinstance(node, ast.Call) and last(node.func) == name:
            calls.append(node)
    return bool(calls) and not any(_may_pass(call, parameter, place) for call in calls)


def _may_pass(call: ast.Call, parameter: str, place: int | None) -> bool:
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    packed = any(keyword.arg is None for keyword in call.keywords)
    return starred or packed or passed(call, parameter, place) is not None
