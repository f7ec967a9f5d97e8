"""Statements: assignment, branches, loops, ``with``, ``try``, ``return``.

Branches run on copies of the variables and meet again lane by lane: a scenario that reaches only one of two branches
sees only that branch's values.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeVar

from amplint.infer import autocast, uses
from amplint.infer.bodies import nodes_below
from amplint.infer.conflicts import index_write
from amplint.infer.expressions import evaluate, in_place_operator
from amplint.infer.frame import Frame, element_of, merge, options_of, unite
from amplint.infer.guards import narrow, split, usually
from amplint.infer.layer_lists import iterated
from amplint.infer.objects import class_value, function_value, imported, set_attribute
from amplint.infer.reached import branches_met
from amplint.infer.values import (
    UNKNOWN,
    AutocastContext,
    Const,
    Instance,
    Layer,
    Mapping,
    Sequence,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as Items

LOOP_PASSES = 2
"""Times a loop body runs: once with the values before it, once with those it leaves."""

S = TypeVar("S", bound=ast.stmt)


def execute(frame: Frame, body: Items[ast.stmt]) -> None:
    """Run statements until they end or no scenario is live."""
    for statement in body:
        if not frame.live:
            return
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            frame.statement = statement
            handler(frame, statement)


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind a target to a value."""
    if isinstance(target, ast.Name):
        frame.variables[target.id] = value
        frame.forget_written(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(frame, target.value)
        set_attribute(frame, owner, target.attr, value)
        if isinstance(target.value, ast.Name) and isinstance(owner, Instance):
            frame.write(target.value.id, target.attr, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(frame, target, value)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, value)


def _assign_item(frame: Frame, target: ast.Subscript, value: Value) -> None:
    container = evaluate(frame, target.value)
    index = evaluate(frame, target.slice)
    if isinstance(container, Tensor):
        index_write(frame, target, container, index, value)
        uses.assigned(frame, target, container, value)
    elif isinstance(held := container.children if isinstance(container, Layer) else container, Mapping):
        if held.shared:
            return
        held.loose = held.loose or frame.branches > 0
        if isinstance(index, Const):
            held.items[index.value] = value
        else:
            held.other = value if held.other is None else unite(held.other, value)
    elif isinstance(container, Sequence) and isinstance(target.value, ast.Name):
        everything = (frame.session.all_lanes,) * 2
        element = merge(frame.session, element_of(frame.session, container), everything[0], value, everything[1])
        frame.variables[target.value.id] = Sequence(None, element, container.mutable)


def _unpack(frame: Frame, targets: Items[ast.expr], value: Value) -> None:
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    parts = [_items_of(frame, option, len(targets), starred) for option in options_of(value)]
    for position, target in enumerate(targets):
        everything = frame.session.all_lanes
        joined = parts[0][position]
        for part in parts[1:]:
            joined = merge(frame.session, joined, everything, part[position], everything)
        assign(frame, target, joined)


def _items_of(frame: Frame, value: Value, count: int, starred: int | None) -> list[Value]:
    """``count`` items of a value being unpacked."""
    if isinstance(value, Sequence):
        items = value.items
        if items is not None and starred is None and len(items) == count:
            return list(items)
        if items is not None and starred is not None and len(items) >= count - 1:
            tail = count - starred - 1
            middle = items[starred : len(items) - tail]
            return [*items[:starred], Sequence(middle, mutable=True), *items[len(items) - tail :]]
        return [element_of(frame.session, value)] * count
    if isinstance(value, Tensor) and not value.maybe:
        return [value] * count
    return [UNKNOWN] * count


def _expression(frame: Frame, statement: ast.Expr) -> None:
    evaluate(frame, statement.value)


def _assign(frame: Frame, statement: ast.Assign) -> None:
    value = evaluate(frame, statement.value)
    frame.statement = statement
    for target in statement.targets:
        assign(frame, target, value)


def _annotated(frame: Frame, statement: ast.AnnAssign) -> None:
    if statement.value is not None:
        assign(frame, statement.target, evaluate(frame, statement.value))


def _augmented(frame: Frame, statement: ast.AugAssign) -> None:
    left = evaluate(frame, statement.target)
    right = evaluate(frame, statement.value)
    result = in_place_operator(frame, statement, left, right)
    if frame.session.observer is not None:
        frame.session.observer.saw(frame, statement, result)
    if isinstance(statement.target, ast.Subscript) and isinstance(evaluate(frame, statement.target.value), Tensor):
        _assign_item(frame, statement.target, result)
    else:
        assign(frame, statement.target, result)


def _return(frame: Frame, statement: ast.Return) -> None:
    value = evaluate(frame, statement.value) if statement.value is not None else Const(None)
    frame.returns.append((frame.live, value))
    frame.returned.append(statement.value)
    frame.live = 0


def _stop(frame: Frame, statement: ast.stmt) -> None:
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        evaluate(frame, statement.exc)
    frame.live = 0


def _branch(frame: Frame, statement: ast.If) -> None:
    yes, no = split(frame, statement.test)
    usual = usually(frame, statement.test) if frame.session.observer is not None else None
    before, live, block, path = frame.variables, frame.live, frame.block, frame.path
    frame.branches += 1
    frame.variables, frame.live, frame.block = dict(before), yes, id(statement.body)
    frame.path = taken = (*path, id(statement.body)) if no else path
    narrow(frame, statement.test, True)
    unusually = _run_branch(frame, statement.body, unusual=usual is False and bool(no))
    left, left_live = frame.variables, frame.live
    frame.variables, frame.live, frame.block = dict(before), no, id(statement.orelse)
    frame.path = other = (*path, id(statement.orelse)) if yes else path
    narrow(frame, statement.test, False)
    unusually |= _run_branch(frame, statement.orelse, unusual=usual is True and bool(yes))
    frame.branches -= 1
    if frame.constructing is not None:
        for name, value in unusually.items():
            frame.constructing.attributes.setdefault(name, value)
    frame.block, frame.path = block, path
    branches_met(frame, taken, other)
    _meet(frame, left, left_live, frame.variables, frame.live)
    if not live:
        frame.live = 0


def _run_branch(frame: Frame, body: Items[ast.stmt], *, unusual: bool) -> dict[str, Value]:
    """Run one branch. The program does not go on with what an unusual one leaves: its attributes are handed back."""
    if not unusual:
        execute(frame, body)
        return {}
    returned, instance = len(frame.returns), frame.constructing
    before = dict(instance.attributes) if instance is not None else {}
    execute(frame, body)
    del frame.returns[returned:]
    frame.live = 0
    if instance is None:
        return {}
    left, instance.attributes = instance.attributes, before
    return left


def _meet(frame: Frame, a: dict[str, Value], a_live: int, b: dict[str, Value], b_live: int) -> None:
    """Continue with what two paths leave."""
    frame.live = a_live | b_live
    if not a_live:
        frame.variables = b
        return
    if not b_live:
        frame.variables = a
        return
    joined: dict[str, Value] = {}
    for name in {**a, **b}:
        left, right = a.get(name), b.get(name)
        if left is None or right is None:
            if "." not in name:
                joined[name] = left or right or UNKNOWN
        else:
            joined[name] = left if left is right else merge(frame.session, left, a_live, right, b_live)
    frame.variables = joined


def _loop(frame: Frame, statement: ast.For | ast.AsyncFor | ast.While) -> None:
    source = None if isinstance(statement, ast.While) else evaluate(frame, statement.iter)
    items = _iterations(frame, source)
    each = _runs_each(source, statement)
    if each is not None:
        items = [*each]
    settled = all(item.key == items[0].key for item in items)
    block, frame.block = frame.block, id(statement.body)
    frame.branches += 1
    for item in items:
        before, live = dict(frame.variables), frame.live
        if isinstance(statement, ast.While):
            yes, _ = split(frame, statement.test)
            frame.live = yes
            narrow(frame, statement.test, True)
        else:
            assign(frame, statement.target, item)
        execute(frame, statement.body)
        if each is not None and frame.live == live:
            continue
        _meet(frame, frame.variables, frame.live, before, live)
        if settled and not _changed(frame.variables, before):
            break
    frame.branches -= 1
    frame.block = block
    execute(frame, statement.orelse)


MAX_UNROLLED = 4
"""Different items of a list for each of which a loop's body runs once, in order."""


def _runs_each(source: Value | None, statement: ast.For | ast.AsyncFor | ast.While) -> tuple[Value, ...] | None:
    """The items that a loop runs for, where they are few and of different kinds and none is left out."""
    if isinstance(source, Layer):
        source = source.children
    if not isinstance(source, Sequence) or source.items is None or not 1 < len(source.items) <= MAX_UNROLLED:
        return None
    if len({item.key for item in source.items}) == 1:
        return None
    ends = (ast.Break, ast.Continue, ast.Return)
    return None if any(isinstance(node, ends) for s in statement.body for node in nodes_below(s)) else source.items


def _changed(after: dict[str, Value], before: dict[str, Value]) -> bool:
    """Whether a pass over a loop left another value in a variable that was there before it."""
    return any(
        name in after and after[name] is not value and after[name].key != value.key for name, value in before.items()
    )


def _iterations(frame: Frame, source: Value | None) -> list[Value]:
    """The values of the loop variable in the passes over a loop's body."""
    source = iterated(frame, source) if source is not None else None
    if isinstance(source, Sequence):
        if source.items is not None and 0 < len(source.items) <= LOOP_PASSES:
            return [*source.items, *source.items][: max(len(source.items), LOOP_PASSES)]
        return [element_of(frame.session, source)] * LOOP_PASSES
    if isinstance(source, Tensor) and not source.maybe:
        return [Tensor(source.dtypes, None, source.origin)] * LOOP_PASSES
    return [UNKNOWN] * LOOP_PASSES


def _with(frame: Frame, statement: ast.With | ast.AsyncWith) -> None:
    saved, region = frame.autocast, frame.region
    for item in statement.items:
        value = evaluate(frame, item.context_expr)
        for option in options_of(value):
            if isinstance(option, AutocastContext):
                autocast.enter(frame, option, uncertain=len(options_of(value)) > 1)
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, UNKNOWN)
    execute(frame, statement.body)
    frame.autocast, frame.region = saved, region


def _try(frame: Frame, statement: ast.Try) -> None:
    before, live = dict(frame.variables), frame.live
    block, frame.block = frame.block, id(statement.body)
    path, frame.path = frame.path, (*frame.path, id(statement.body))
    frame.branches += 1
    execute(frame, statement.body)
    execute(frame, statement.orelse)
    frame.block = 0
    for handler in statement.handlers:
        if _for_old_releases(handler):
            continue
        done, done_live = frame.variables, frame.live
        frame.variables, frame.live = dict(before), live
        frame.path = (*path, id(handler))
        if handler.name:
            frame.variables[handler.name] = UNKNOWN
        execute(frame, handler.body)
        _meet(frame, done, done_live, frame.variables, frame.live)
    frame.branches -= 1
    frame.block, frame.path = block, path
    reached = frame.live
    frame.live = live
    execute(frame, statement.finalbody)
    frame.live &= reached


_MISSING_API = frozenset(("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"))


def _for_old_releases(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only serves releases that lack a name or a parameter: not the ones judged here."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(isinstance(kind, ast.Name) and kind.id in _MISSING_API for kind in kinds)


def _match(frame: Frame, statement: ast.Match) -> None:
    evaluate(frame, statement.subject)
    before, live, block, path = dict(frame.variables), frame.live, frame.block, frame.path
    frame.branches += 1
    for case in statement.cases:
        done, done_live = frame.variables, frame.live
        frame.variables, frame.live, frame.block = dict(before), live, id(case.body)
        frame.path = (*path, id(case.body))
        for node in ast.walk(case.pattern):
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                frame.variables[name] = UNKNOWN
        execute(frame, case.body)
        _meet(frame, done, done_live, frame.variables, frame.live)
    frame.branches -= 1
    frame.block, frame.path = block, path


def _define(frame: Frame, statement: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    frame.variables[statement.name] = function_value(frame, statement)


def _define_class(frame: Frame, statement: ast.ClassDef) -> None:
    frame.variables[statement.name] = class_value(frame, statement)


def _import(frame: Frame, statement: ast.Import) -> None:
    for alias in statement.names:
        bound = alias.asname or alias.name.split(".")[0]
        frame.variables[bound] = imported(frame.session, frame.namespace, alias, statement)


def _import_from(frame: Frame, statement: ast.ImportFrom) -> None:
    for alias in statement.names:
        if alias.name != "*":
            value = imported(frame.session, frame.namespace, alias, statement)
            frame.variables[alias.asname or alias.name] = value


def _assert(frame: Frame, statement: ast.Assert) -> None:
    evaluate(frame, statement.test)
    yes, _ = split(frame, statement.test)
    if yes or isinstance(statement.test, ast.Constant):
        frame.live = yes
        narrow(frame, statement.test, True)


def _delete(frame: Frame, statement: ast.Delete) -> None:
    for target in statement.targets:
        if isinstance(target, ast.Name):
            frame.variables.pop(target.id, None)


def _forget(frame: Frame, statement: ast.Global | ast.Nonlocal) -> None:
    for name in statement.names:
        frame.variables[name] = UNKNOWN


def _handle(kind: type[S], handler: Callable[[Frame, S], None]) -> None:
    _HANDLERS[kind] = handler


_HANDLERS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {}
_handle(ast.Expr, _expression)
_handle(ast.Assign, _assign)
_handle(ast.AnnAssign, _annotated)
_handle(ast.AugAssign, _augmented)
_handle(ast.Return, _return)
_handle(ast.Raise, _stop)
_handle(ast.Continue, _stop)
_handle(ast.Break, _stop)
_handle(ast.If, _branch)
_handle(ast.For, _loop)
_handle(ast.AsyncFor, _loop)
_handle(ast.While, _loop)
_handle(ast.With, _with)
_handle(ast.AsyncWith, _with)
_handle(ast.Try, _try)
_handle(ast.Match, _match)
_handle(ast.FunctionDef, _define)
_handle(ast.AsyncFunctionDef, _define)
_handle(ast.ClassDef, _define_class)
_handle(ast.Import, _import)
_handle(ast.ImportFrom, _import_from)
_handle(ast.Assert, _assert)
_handle(ast.Delete, _delete)
_handle(ast.Global, _forget)
_handle(ast.Nonlocal, _forget)
if hasattr(ast, "TryStar"):
    _handle(ast.TryStar, _try)
