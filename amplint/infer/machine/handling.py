"""``try`` and ``with``: what may raise on the way leads to the handlers, and every way out through ``finally``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.contexts import AutocastContext
from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import UNKNOWN, External, Sequence, Value
from amplint.infer.names.classes import find_member
from amplint.infer.names.definitions import Bound, Function, Instance
from amplint.infer.state.activation import Env
from amplint.infer.state.catching import Catch
from amplint.infer.state.dispatch import assign, evaluate, execute
from amplint.infer.state.meeting import environment, go_on, met, met_all
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.torch_model import autocast

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame

_RAISING = (
    *(ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Await, ast.Yield),
    *(ast.YieldFrom, ast.Starred, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise, ast.Delete),
)
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match)


@once_for_each_node
def may_raise(statement: ast.stmt) -> bool:
    """Whether a statement itself, but for the blocks in it, may raise."""
    if isinstance(statement, (ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass, ast.Break, ast.Continue)):
        return False
    parts: list[ast.AST] = [statement]
    if isinstance(statement, _BLOCKS):
        parts = [
            child for child in ast.iter_child_nodes(statement) if not isinstance(child, (ast.stmt, ast.match_case))
        ]
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
            return True
    unpacks = isinstance(statement, (ast.Assign, ast.AugAssign)) and not isinstance(
        statement.targets[0] if isinstance(statement, ast.Assign) else None, ast.Name
    )
    return unpacks or any(isinstance(node, _RAISING) for part in parts for node in nodes_below(part))


def tried(frame: Frame, statement: ast.Try) -> None:
    """Run a ``try`` statement."""
    if statement.finalbody:
        _finally(frame, statement)
    else:
        _handled(frame, statement)


def _handled(frame: Frame, statement: ast.Try) -> None:
    """The body, then ``else``; each handler from wherever the body may raise."""
    own, around = Catch(), frame.catches
    block, frame.block = frame.block, id(statement.body)
    path, frame.path = frame.path, (*frame.path, id(statement.body))
    frame.branches += 1
    if statement.handlers:
        frame.catches = (own,) if any(map(_takes_all, statement.handlers)) else (*around, own)
    execute(frame, statement.body)
    frame.catches = around
    execute(frame, statement.orelse)
    frame.block = 0
    for handler in statement.handlers:
        reached = own.thrown if _for_old_releases(handler) else own.reached
        if not reached.live:
            continue
        done = Env(frame.live, frame.variables)
        go_on(frame, reached)
        frame.path = (*path, id(handler))
        if handler.name:
            frame.bind(handler.name, UNKNOWN)
        execute(frame, handler.body)
        frame.live, frame.variables = met(frame.session, done, Env(frame.live, frame.variables))
    frame.branches -= 1
    frame.block, frame.path = block, path


def _finally(frame: Frame, statement: ast.Try) -> None:
    """A ``try`` whose last block runs on every way out: the usual one, by an exception or ``return``, out of a loop."""
    escaped, around = Catch(), frame.catches
    breaks, continues, leaves, returned = frame.breaks, frame.continues, frame.leaves, len(frame.returns)
    frame.catches, frame.breaks, frame.continues, frame.leaves = (escaped,), [], [], []
    _handled(frame, statement)
    ways = [frame.breaks, frame.continues]
    left = met_all(frame.session, frame.leaves)
    frame.catches, frame.breaks, frame.continues, frame.leaves = around, breaks, continues, leaves
    pending, returns = frame.returns[returned:], frame.returned[returned:]
    del frame.returns[returned:], frame.returned[returned:]
    execute(frame, statement.finalbody)
    usual = Env(frame.live, frame.variables)
    frame.branches += 1
    path, frame.path = frame.path, (*frame.path, id(statement.finalbody))
    for way, onward in zip(ways, (breaks, continues), strict=True):
        if way:
            go_on(frame, met_all(frame.session, way))
            execute(frame, statement.finalbody)
            if frame.live:
                onward.append(Env(frame.live, frame.variables))
    if left.live or escaped.reached.live:
        go_on(frame, met(frame.session, left, escaped.reached))
        execute(frame, statement.finalbody)
        for (live, value), node in zip(pending, returns, strict=True):
            if live & frame.live:
                frame.returns.append((live & frame.live, value))
                frame.returned.append(node)
        if left.live and leaves is not None:
            leaves.append(environment(frame))
        if escaped.reached.live:
            frame.may_raise(thrown=bool(escaped.thrown.live))
    frame.branches -= 1
    frame.path = path
    frame.live, frame.variables = usual


def _takes_all(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    return kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))


_MISSING_API = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"))


def _for_old_releases(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only serves releases that lack a name or a parameter: not the ones judged here.

    What the body raises by a statement reaches it all the same.
    """
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(isinstance(kind, ast.Name) and kind.id in _MISSING_API for kind in kinds)


def entered(frame: Frame, statement: ast.With | ast.AsyncWith) -> None:
    """Run a ``with`` statement; behind one that may swallow exceptions the program goes on wherever one was raised."""
    saved, region, around = frame.autocast, frame.region, frame.catches
    swallowed = None
    for item in statement.items:
        value = evaluate(frame, item.context_expr)
        for option in options_of(value):
            if isinstance(option, AutocastContext):
                autocast.enter(frame, option, uncertain=len(options_of(value)) > 1)
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, UNKNOWN)
        if _swallows(frame, item.context_expr, value):
            swallowed = Catch()
    if swallowed is None:
        execute(frame, statement.body)
    else:
        frame.catches = (*around, swallowed)
        frame.branches += 1
        execute(frame, statement.body)
        frame.branches -= 1
        frame.catches = around
        end = Env(frame.live, frame.variables)
        frame.live, frame.variables = met(frame.session, end, swallowed.reached)
    frame.autocast, frame.region = saved, region


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
