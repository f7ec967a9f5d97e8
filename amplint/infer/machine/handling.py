"""Context managers: what they set, and which keep what is raised inside them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.contexts import AutocastContext
from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import UNKNOWN, External, Sequence, Value
from amplint.infer.names.classes import find_member
from amplint.infer.names.definitions import Bound, Function, Instance
from amplint.infer.state.dispatch import assign, evaluate
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.torch_model import autocast

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame


def entered(frame: Frame, item: ast.withitem) -> bool:
    """Enter a context manager; whether it keeps what is raised inside it."""
    value = evaluate(frame, item.context_expr)
    for option in options_of(value):
        if isinstance(option, AutocastContext):
            autocast.enter(frame, option, uncertain=len(options_of(value)) > 1)
    if item.optional_vars is not None:
        assign(frame, item.optional_vars, UNKNOWN)
    return _swallows(frame, item.context_expr, value)


def _swallows(frame: Frame, expression: ast.expr, value: Value) -> bool:
    """Whether a context manager keeps what is raised inside it: ``suppress``, or one of the project that can."""
    if isinstance(value, Instance):
        leaving = find_member(value.cls, "__exit__")
        if not isinstance(leaving, Function) or isinstance(leaving.node, ast.Lambda):
            return False
        return leaving.namespace.body(leaving.node).answers
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, (ast.Name, ast.Attribute)):
        return False
    made: Value = value
    if value is UNKNOWN or isinstance(value, Sequence):
        made = evaluate(frame, expression.func)
    if isinstance(made, External):
        return made.name in _SUPPRESSING
    while isinstance(made, Decorated):
        made = made.function
    if isinstance(made, Bound):
        made = made.function
    return isinstance(made, Function) and _catches_around_yield(made.node)


_SUPPRESSING = ("contextlib.suppress", "pytest.raises")


@once_for_each_node
def _catches_around_yield(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a generator that is a context manager handles what is raised where it is entered."""
    blocks = (child for child in nodes_below(node) if isinstance(child, ast.Try) and child.handlers)
    return any(isinstance(inner, ast.Yield) for block in blocks for s in block.body for inner in nodes_below(s))
