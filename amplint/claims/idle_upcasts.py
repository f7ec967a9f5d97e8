"""Upcasts that autocast undoes where nobody enters autocast, or where nothing is left of the float32 asked for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.on_host import is_on_host
from amplint.claims.result_uses import uses
from amplint.claims.surroundings import FunctionNode, Surroundings, works_on_a_model
from amplint.infer.lattice.origins import deciding
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.conflict import Conflict
    from amplint.finding import Doubt
    from amplint.infer.state.facts import FileFacts

_ENTRIES = frozenset(("forward", "__call__", "training_step", "validation_step", "test_step", "predict_step"))
"""Methods that run where autocast may be on."""


def idle_doubts(facts: FileFacts, conflict: Conflict) -> Iterator[Doubt]:
    """Why an upcast that autocast undoes may not matter.

    It works on the host, makes a constant, is in a test or where weights are prepared, or is given up at once.
    """
    around = Surroundings.of(facts.source.tree)
    node = conflict.node
    function = around.function(node)
    if facts.device != "cpu" and any(
        is_on_host(around, function, operand.node, through_calls=True) for operand in conflict.operands
    ):
        yield doubts.ON_HOST
    if _is_constant(facts, conflict):
        yield doubts.MAKES_CONSTANT
    if function is None or not isinstance(node, ast.expr):
        return
    if _is_compared_with_zero(around, function, node):
        yield doubts.COMPARED_WITH_ZERO
    if _goes_back(around, function, node):
        yield doubts.CAST_BACK
    if _is_foreign(facts, conflict):
        yield doubts.CAST_IN_OTHER_FILE
    if _prepares_weights(facts.source.tree, around, function):
        yield doubts.PREPARES_WEIGHTS
    if not _names_autocast(facts) and _is_of_tests(facts.source.tree, around, function):
        yield doubts.RUN_BY_TESTS


def _is_constant(facts: FileFacts, conflict: Conflict) -> bool:
    """Whether a plain function makes all operands itself, and only constructors of the file use it, if anything does:
    it makes a constant, and that before there is a region."""
    lane = next(number for number, each in enumerate(facts.scenarios) if each.name == conflict.scenarios[0])
    decided = [deciding(operand.value.origin, lane) for operand in conflict.operands]
    function = Surroundings.of(facts.source.tree).function(conflict.node)
    if function is None or not all(origin is not None and origin.made is not None for origin in decided):
        return False
    around = Surroundings.of(facts.source.tree)
    if around.function(function) is not None or isinstance(around.parent(function), ast.ClassDef):
        return False
    users = [
        around.function(node)
        for node in ast.walk(facts.source.tree)
        if isinstance(node, ast.Name) and node.id == function.name
    ]
    return all(user is None or user.name == "__init__" for user in users)


def _is_foreign(facts: FileFacts, conflict: Conflict) -> bool:
    """Whether another file casts up what is multiplied here: the product was not meant by it."""
    lane = next(number for number, each in enumerate(facts.scenarios) if each.name == conflict.scenarios[0])
    decided = [deciding(operand.value.origin, lane) for operand in conflict.operands]
    return all(origin is not None and origin.filename != str(facts.path) for origin in decided)


def _names_autocast(facts: FileFacts) -> bool:
    return any(reference.name is not None and "autocast" in reference.name for reference in facts.references)


def _prepares_weights(tree: ast.Module, around: Surroundings, function: FunctionNode) -> bool:
    """Whether a function overwrites weights behind autograd's back, or gets a module and no tensor, outside forward."""
    plain = not isinstance(around.parent(function), ast.ClassDef)
    if not (plain and works_on_a_model(function)) and not any(_is_data(target) for target in _targets(function)):
        return False
    return function.name not in _reached(tree)


def _targets(function: FunctionNode) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            yield from node.targets
        elif isinstance(node, ast.AugAssign):
            yield node.target


def _is_data(target: ast.expr) -> bool:
    """``layer.weight.data`` or a part of it."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute) and target.attr == "data"


def _reached(tree: ast.Module) -> set[str]:
    """The names of functions that methods which may run under autocast call, or that these call, in one file."""
    functions = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    found, pending = set(_ENTRIES), set(_ENTRIES)
    while pending:
        called = {
            name
            for function in functions
            if function.name in pending
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and (name := _called(node)) is not None
        }
        pending = called - found
        found |= called
    return found


def _called(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)


def _is_of_tests(tree: ast.Module, around: Surroundings, function: FunctionNode) -> bool:
    """Whether only what a test runner collects leads to a function: its own autocast would have to be in the file."""
    outermost = function
    while (outer := around.function(outermost)) is not None:
        outermost = outer
    owner = around.parent(outermost)
    if isinstance(owner, ast.ClassDef):
        return _is_test_case(owner)
    if outermost.name.startswith("test_"):
        return any(isinstance(node, ast.Assert) for node in ast.walk(outermost))
    if not outermost.name.startswith("_"):
        return False
    users = [around.function(n) for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == outermost.name]
    users = [user for user in users if user is not outermost]
    return bool(users) and all(
        user is not None and not _is_recursive(user, outermost) and _is_of_tests(tree, around, user) for user in users
    )


def _is_recursive(user: FunctionNode, function: FunctionNode) -> bool:
    """Whether two functions call each other."""
    return any(isinstance(node, ast.Name) and node.id == user.name for node in ast.walk(function))


def _is_test_case(owner: ast.ClassDef) -> bool:
    """What unittest or pytest collects."""
    if any(ast.unparse(base).endswith("TestCase") for base in owner.bases):
        return True
    methods = [node.name for node in owner.body if isinstance(node, FunctionNode)]
    return owner.name.startswith("Test") and not owner.bases and any(name.startswith("test_") for name in methods)


def _is_compared_with_zero(around: Surroundings, function: FunctionNode, node: ast.expr) -> bool:
    found = list(uses(around, function, node))
    return bool(found) and all(_is_zero_test(around.parent(use), use) for use in found)


def _is_zero_test(test: ast.AST | None, use: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
        return False
    other = test.comparators[0] if test.left is use else test.left
    return isinstance(other, ast.Constant) and other.value == 0


def _goes_back(around: Surroundings, function: FunctionNode, node: ast.expr) -> bool:
    """Whether a product is cast at once to the dtype of an argument of the function: what it was before the upcast."""
    found = list(uses(around, function, node))
    return bool(found) and all(_is_cast_back(around, function, use) for use in found)


def _is_cast_back(around: Surroundings, function: FunctionNode, use: ast.expr) -> bool:
    method = around.parent(use)
    call = around.parent(method) if isinstance(method, ast.Attribute) else None
    if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not method:
        return False
    if method.attr not in ("to", "type", "type_as") or len(call.args) + len(call.keywords) != 1:
        return False
    wanted = call.args[0] if call.args else call.keywords[0].value
    if isinstance(wanted, ast.Name) and method.attr != "type_as":
        wanted = around.only_value(wanted) or wanted
    if isinstance(wanted, ast.Attribute) and wanted.attr == "dtype":
        wanted = wanted.value
    elif method.attr != "type_as":
        return False
    spec = function.args
    given = [argument.arg for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return isinstance(wanted, ast.Name) and wanted.id in given and wanted.id not in ("self", "cls")
