"""Statements without blocks: assignments, definitions, and those that leave a block up to where they do."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeVar

from amplint.infer.lattice.joining import element_of, merge, options_of, unite
from amplint.infer.lattice.values import UNKNOWN, Const, Layer, Mapping, Sequence, Tensor, Value
from amplint.infer.machine.answers import hold
from amplint.infer.machine.choices import note_parts
from amplint.infer.machine.expressions import evaluate, global_value
from amplint.infer.machine.guards import split
from amplint.infer.machine.narrowing import narrow
from amplint.infer.machine.objects import class_value, function_value, imported, set_attribute
from amplint.infer.machine.operators import in_place_operator
from amplint.infer.machine.refusals import is_something_else
from amplint.infer.names.definitions import Instance
from amplint.infer.state.frame import Returned
from amplint.infer.state.meeting import alike, carries_dtype
from amplint.infer.state.session import items_place
from amplint.infer.torch_model import uses
from amplint.infer.torch_model.mismatches import index_write

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as Items

    from amplint.infer.state.frame import Frame

S = TypeVar("S", bound=ast.stmt)


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind a target to a value."""
    if isinstance(target, ast.Name):
        frame.bind(target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target.elts, value)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(frame, target.value)
        frame.forget_attribute(target.attr)
        set_attribute(frame, owner, target.attr, value)
        if isinstance(target.value, ast.Name) and isinstance(owner, Instance):
            frame.write(target.value.id, target.attr, value)
    elif isinstance(target, ast.Subscript):
        _assign_item(frame, target, value)
        if isinstance(target.value, ast.Attribute):
            frame.forget_attribute(f"[{target.value.attr}")
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
            _set_key(frame, held, index.value, value)
        else:
            held.other = value if held.other is None else unite(held.other, value)
    elif isinstance(container, Sequence) and isinstance(target.value, ast.Name):
        everything = (frame.session.all_lanes,) * 2
        element = merge(frame.session, element_of(frame.session, container), everything[0], value, everything[1])
        frame.bind(target.value.id, Sequence(None, element, container.mutable))


def _set_key(frame: Frame, mapping: Mapping, key: object, value: Value) -> None:
    """``mapping[key] = value``: what was there stays possible unless this surely happens after it was made."""
    old = mapping.items.get(key)
    if old is not None and (frame.branches > 0 or mapping.maker != frame.number):
        value = merge(frame.session, old, frame.session.all_lanes, value, frame.live)
    if carries_dtype(value) and (old is None or not alike(old, value)):
        frame.session.changed(items_place(mapping))
    mapping.items[key] = value


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
            between = items[starred : len(items) - tail]
            return [*items[:starred], Sequence(between, mutable=True), *items[len(items) - tail :]]
        element = element_of(frame.session, value)
        if items is not None:
            return [element] * count
        first, last = (count, 0) if starred is None else (starred, starred + 1)
        found = [(i < first and value.at(i)) or (i >= last and value.at(i - count)) or element for i in range(count)]
        if starred is not None:
            middle = UNKNOWN if value.head or value.tail else element
            found[starred] = Sequence(None, middle, mutable=True)
        return found
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
        hold(frame, target, statement.value)
        note_parts(frame, target, statement.value)


def _annotated(frame: Frame, statement: ast.AnnAssign) -> None:
    if statement.value is not None:
        assign(frame, statement.target, evaluate(frame, statement.value))


def _augmented(frame: Frame, statement: ast.AugAssign) -> None:
    left = evaluate(frame, statement.target)
    right = evaluate(frame, statement.value)
    result = in_place_operator(frame, statement, left, right)
    frame.session.recorder.value(frame.session, frame, statement, result)
    if isinstance(statement.target, ast.Subscript) and isinstance(evaluate(frame, statement.target.value), Tensor):
        _assign_item(frame, statement.target, result)
    else:
        assign(frame, statement.target, result)


def _return(frame: Frame, statement: ast.Return) -> None:
    value = evaluate(frame, statement.value) if statement.value is not None else Const(None)
    if frame.live:
        frame.returns.append(Returned(frame.live, value, statement.value, frame.raised))


def _raise(frame: Frame, statement: ast.Raise) -> None:
    if statement.exc is not None:
        evaluate(frame, statement.exc)
    frame.thrown = True


def _define(frame: Frame, statement: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    frame.bind(statement.name, function_value(frame, statement))


def _define_class(frame: Frame, statement: ast.ClassDef) -> None:
    frame.bind(statement.name, class_value(frame, statement))


def _import(frame: Frame, statement: ast.Import) -> None:
    for alias in statement.names:
        bound = alias.asname or alias.name.split(".")[0]
        frame.bind(bound, imported(frame.session, frame.namespace, alias, statement))


def _import_from(frame: Frame, statement: ast.ImportFrom) -> None:
    for alias in statement.names:
        if alias.name != "*":
            value = imported(frame.session, frame.namespace, alias, statement)
            frame.bind(alias.asname or alias.name, value)


def _assert(frame: Frame, statement: ast.Assert) -> None:
    evaluate(frame, statement.test)
    yes, _ = split(frame, statement.test)
    if yes or isinstance(statement.test, ast.Constant):
        frame.live = yes
        narrow(frame, statement.test, True)
    elif is_something_else(frame, statement.test, answer=True):
        narrow(frame, statement.test, True)


def _delete(frame: Frame, statement: ast.Delete) -> None:
    for target in statement.targets:
        if isinstance(target, ast.Name):
            frame.bind(target.id, UNKNOWN)
            del frame.variables[target.id]
        elif isinstance(target, ast.Subscript):
            evaluate(frame, target.value)
            evaluate(frame, target.slice)


def _global(frame: Frame, statement: ast.Global) -> None:
    for name in statement.names:
        frame.variables[name] = global_value(frame, name)
        frame.shared[name] = None


def _nonlocal(frame: Frame, statement: ast.Nonlocal) -> None:
    for name in statement.names:
        owner = frame.outer
        while owner is not None and name not in owner.variables:
            owner = owner.outer
        frame.shared[name] = owner
        frame.variables[name] = owner.variables[name] if owner is not None else UNKNOWN


def _handle(kind: type[S], handler: Callable[[Frame, S], None]) -> None:
    HANDLERS[kind] = handler


HANDLERS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {}
_handle(ast.Expr, _expression)
_handle(ast.Assign, _assign)
_handle(ast.AnnAssign, _annotated)
_handle(ast.AugAssign, _augmented)
_handle(ast.Return, _return)
_handle(ast.Raise, _raise)
_handle(ast.FunctionDef, _define)
_handle(ast.AsyncFunctionDef, _define)
_handle(ast.ClassDef, _define_class)
_handle(ast.Import, _import)
_handle(ast.ImportFrom, _import_from)
_handle(ast.Assert, _assert)
_handle(ast.Delete, _delete)
_handle(ast.Global, _global)
_handle(ast.Nonlocal, _nonlocal)
