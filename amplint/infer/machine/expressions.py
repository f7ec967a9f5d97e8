"""Expressions: names, attributes, operators, subscripts, calls, comprehensions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, TypeVar

from amplint.infer.lattice.answered import ASKED
from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.joining import (
    MAX_LENGTH,
    concatenated,
    element_of,
    is_answer,
    is_none,
    merge,
    options_of,
    unite,
)
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    Mapping,
    Number,
    Sequence,
    Tensor,
    Union,
    Value,
)
from amplint.infer.machine import containers, families
from amplint.infer.machine.builtins import BUILTIN_NAMES
from amplint.infer.machine.comparing import comparison
from amplint.infer.machine.guards import split, truth, usually
from amplint.infer.machine.narrowing import narrow
from amplint.infer.machine.objects import binding_evaluator, function_value, get_attribute, is_missing, set_attribute
from amplint.infer.machine.operators import binary_operator, unary_operator
from amplint.infer.names.definitions import Bound, Function, Instance
from amplint.infer.state.dispatch import assign, call
from amplint.infer.state.meeting import binds, reaching
from amplint.infer.state.session import OutOfBudget
from amplint.infer.syntax.bodies import nodes_below, once_for_each_node
from amplint.infer.syntax.late import bound_inside
from amplint.infer.torch_model.layer_lists import iterated

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.infer.state.frame import Frame

E = TypeVar("E", bound=ast.expr)


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression; unknown for what is not followed. Raises OutOfBudget."""
    session = frame.session
    if session.steps >= session.limit:
        raise OutOfBudget
    session.steps += 1
    handler = _HANDLERS.get(type(node))
    value = handler(frame, node) if handler is not None else UNKNOWN
    if session.recorder.observes:
        session.recorder.value(session, frame, node, value)
    return value


@once_for_each_node
def _literal(node: ast.Constant) -> Const:
    return Const(node.value)


def _constant(frame: Frame, node: ast.Constant) -> Value:
    return _literal(node)


def _name(frame: Frame, node: ast.Name) -> Value:
    name = node.id
    value = frame.variables.get(name)
    if value is not None:
        return value
    value = frame.around(name) if name in frame.late else None
    if value is None:
        value = frame.closure.get(name)
    return value if value is not None else global_value(frame, name)


def global_value(frame: Frame, name: str) -> Value:
    """What a name is outside of all functions."""
    evaluator = binding_evaluator(frame.session)
    value = frame.namespace.lookup(name, evaluator)
    if value is not None and frame.namespace.own and name in frame.session.settled.given:
        return Number("bool")
    if value is not None:
        rebound = frame.namespace.rebound
        if not rebound or name not in rebound:
            return value
        frame.reads.add(f"{ASKED}{name}")
        return unite(*options_of(value))
    if name in BUILTIN_NAMES:
        return Builtin(name)
    return frame.namespace.star_import(name, evaluator) or UNKNOWN


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    if frame.notes and isinstance(node.value, ast.Name):
        written = frame.written(node.value.id, node.attr)
        if written is not None:
            return written
    value = evaluate(frame, node.value)
    if type(value) is Const and value.value is None:
        _raises(frame)
    return get_attribute(frame, value, node.attr, node)


def _raises(frame: Frame) -> None:
    """Leave a branch that cannot be taken where what is usual holds: it would use what is None."""
    if frame.branches and frame.session.assumptions.usual:
        frame.live = 0


def _call(frame: Frame, node: ast.Call) -> Value:
    callee = evaluate(frame, node.func)
    if isinstance(node.func, ast.Attribute) and is_missing(frame, node.func, callee):
        frame.live = 0
    elif is_none(callee):
        _raises(frame)
    arguments = arguments_of(frame, node)
    arguments.callee = node.func
    if isinstance(node.func, ast.Attribute) and node.func.attr in _HOOKING:
        _hooked(frame, arguments)
    value = call(frame, callee, arguments, node)
    if frame.notes or frame.shared:
        _behind_call(frame, node, callee)
    return value


_HOOKING = frozenset(("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"))
"""Methods of modules that take a function to call whenever the module runs."""


def _hooked(frame: Frame, arguments: Arguments) -> None:
    """Forget the attributes that a hook sets: it runs where nothing is seen to call it."""
    hook = arguments.get(0, "hook")
    if isinstance(hook, Bound):
        for node in nodes_below(hook.function.node):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                set_attribute(frame, hook.instance, node.attr, UNKNOWN)


def _behind_call(frame: Frame, node: ast.Call, callee: Value) -> None:
    """Forget what code that ran may have changed."""
    stores = isinstance(callee, (Bound, Union))
    if isinstance(callee, Function) and not isinstance(callee.node, ast.Lambda):
        stores = callee.namespace.body(callee.node).stores
    if stores:
        frame.forget_written()
    if isinstance(callee, Builtin) or callee is UNKNOWN:
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(receiver, ast.Name) and not isinstance(frame.variables.get(receiver.id), Instance):
            frame.forget_answers(receiver.id)
    if isinstance(callee, (Bound, Union, Function)):
        for name, owner in frame.shared.items():
            if owner is None:
                frame.variables[name] = global_value(frame, name)
            elif name in frame.variables and name in owner.variables:
                frame.variables[name] = unite(frame.variables[name], owner.variables[name])


def arguments_of(frame: Frame, node: ast.Call) -> Arguments:
    """Evaluate the arguments of a call."""
    arguments = Arguments()
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            spread = evaluate(frame, argument.value)
            if isinstance(spread, Sequence) and spread.items is not None and len(spread.items) <= MAX_LENGTH:
                arguments.positional.extend(spread.items)
            else:
                _spread(frame, arguments, spread)
        elif not arguments.unknown:
            arguments.nodes[len(arguments.positional)] = argument
            arguments.positional.append(evaluate(frame, argument))
        else:
            _behind_spread(arguments, evaluate(frame, argument))
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is not None:
            arguments.keywords[keyword.arg] = value
            arguments.nodes[keyword.arg] = keyword.value
        elif isinstance(value, Mapping):
            arguments.keywords.update({k: v for k, v in value.items.items() if isinstance(k, str)})
            arguments.unknown = arguments.unknown or value.other is not None
        else:
            arguments.unknown = True
    return arguments


def _spread(frame: Frame, arguments: Arguments, spread: Value) -> None:
    """Pass a sequence of unknown length behind a ``*``."""
    if isinstance(spread, Sequence):
        element = element_of(frame.session, spread)
        arguments.rest = unite(arguments.rest or UNKNOWN, element) if arguments.unknown else element
        arguments.spread = None if arguments.unknown else spread
    else:
        arguments.rest = arguments.spread = None
    arguments.unknown = True


def _behind_spread(arguments: Arguments, value: Value) -> None:
    if arguments.rest is not None:
        arguments.rest = unite(arguments.rest, value)
    if arguments.spread is not None:
        given = arguments.spread
        element, tail = unite(given.element, value), (*given.tail, value)
        arguments.spread = Sequence(None, element, True, given.head, tail, between=given.middle)


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    return binary_operator(frame, node, node.op, left, right, node.left, node.right)


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        return AutocastFlag(value.off, value.on) if isinstance(value, AutocastFlag) else Number("bool")
    return unary_operator(node.op, value)


def _boolean(frame: Frame, node: ast.BoolOp) -> Value:
    live = frame.live
    values = []
    every = frame.session.all_lanes
    on, off = (every, 0) if isinstance(node.op, ast.And) else (0, every)
    for operand in node.values:
        before = frame.variables.copy() if operand is not node.values[0] and binds(operand) else None
        raised = frame.raised
        value = evaluate(frame, operand)
        if operand is not node.values[0]:
            frame.raised = raised
        if before is not None:
            frame.perhaps(before)
        if isinstance(operand, (ast.Compare, ast.UnaryOp)):
            yes, no = split(frame, operand)
        else:
            yes, no = truth(frame, value, operand)
        unreached = every & ~frame.live
        on, off = (
            (on & (yes | unreached), off | no) if isinstance(node.op, ast.And) else (on | yes, off & (no | unreached))
        )
        ends, onward = (no, yes) if isinstance(node.op, ast.And) else (yes, no)
        values.append((frame.live if operand is node.values[-1] else ends, value))
        frame.live = onward
        if not frame.live:
            break
    settled = not frame.live
    frame.live = live
    if all(_is_answer(operand, value) for operand, (_, value) in zip(node.values, values, strict=False)):
        return Number("bool") if on == off == every else AutocastFlag(on, off)
    if settled and isinstance(operand, ast.Compare):
        return Const(isinstance(node.op, ast.Or))
    reached, result = values[0]
    for value_live, value in values[1:]:
        result = merge(frame.session, result, reached, value, value_live)
        reached |= value_live
    if isinstance(node.op, ast.Or):
        options = [o for o in options_of(result) if not is_none(o)]
        return unite(*options) if options else result
    return result


def _is_answer(operand: ast.expr, value: Value) -> bool:
    """Whether an operand is true or false itself, not something that is taken to be."""
    test = isinstance(operand, ast.Compare) or (isinstance(operand, ast.UnaryOp) and isinstance(operand.op, ast.Not))
    return (test and not isinstance(value, Tensor)) or is_answer(value)


def _conditional(frame: Frame, node: ast.IfExp) -> Value:
    yes, no = split(frame, node.test)
    live, variables, path, raised = frame.live, frame.variables, frame.path, frame.raised
    frame.live, frame.variables = yes, dict(variables)
    frame.path = taken = (*path, id(node.body)) if no else path
    narrow(frame, node.test, True)
    left = evaluate(frame, node.body) if yes else UNKNOWN
    taken_end = frame.end()
    frame.live, frame.variables, frame.raised = no, dict(variables), raised
    frame.path = other = (*path, id(node.orelse)) if yes else path
    narrow(frame, node.test, False)
    right = evaluate(frame, node.orelse) if no else UNKNOWN
    other_end = frame.end()
    yes, no, frame.raised = reaching(taken_end, other_end)
    if binds(node.body) or binds(node.orelse) or frame.leaves is not None:
        variables = frame.met(taken_end, other_end).variables
    frame.live, frame.variables, frame.path = live & (taken_end.live | other_end.live), variables, path
    frame.session.recorder.branches_met(frame, taken, other)
    frame.parts = {id(node.body): left, id(node.orelse): right}
    usual = usually(frame, node.test) if yes and no else None
    if usual is not None:
        return left if usual else right
    return merge(frame.session, left, yes, right, no)


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    container = evaluate(frame, node.value)
    index = evaluate(frame, node.slice)
    options = [option for option in options_of(container) if not is_none(option)]
    return unite(*(containers.item(frame, option, index, node) for option in options)) if options else UNKNOWN


def _slice(frame: Frame, node: ast.Slice) -> Value:
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            evaluate(frame, part)
    return Builtin("slice")


def _tuple(frame: Frame, node: ast.Tuple | ast.List) -> Value:
    parts: list[Sequence] = []
    items: list[Value] = []
    for element in node.elts:
        value = evaluate(frame, element)
        if not isinstance(element, ast.Starred):
            items.append(value)
        elif isinstance(value, Sequence) and value.items is not None and len(value.items) <= MAX_LENGTH:
            items.extend(value.items)
        else:
            parts += [Sequence(tuple(items)), value if isinstance(value, Sequence) else Sequence(None)]
            items = []
    given = Sequence(tuple(items))
    for part in reversed(parts):
        given = concatenated(frame.session, part, given)
    mutable = isinstance(node, ast.List)
    return Sequence(given.items, given.element, mutable, given.head, given.tail, frame.block, given.between)


def _set(frame: Frame, node: ast.Set) -> Value:
    return Sequence(tuple(evaluate(frame, element) for element in node.elts), mutable=True)


def _dict(frame: Frame, node: ast.Dict) -> Value:
    mapping = Mapping({}, maker=frame.number)
    for key, item in zip(node.keys, node.values, strict=True):
        value = evaluate(frame, item)
        if key is None:
            if isinstance(value, Mapping):
                mapping.items.update(value.items)
                mapping.other = value.other or mapping.other
            else:
                mapping.other = UNKNOWN
            continue
        name = evaluate(frame, key)
        if isinstance(name, Const):
            mapping.items[name.value] = value
        else:
            mapping.other = value if mapping.other is None else unite(mapping.other, value)
    return mapping


def _comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
    saved, live, raised = frame.variables, frame.live, frame.raised
    frame.variables = dict(saved)
    some = _generators(frame, node.generators)
    element = evaluate(frame, node.elt)
    frame.variables = _behind_comprehension(frame, node, saved)
    frame.live, frame.raised = live, raised
    return Sequence(None, element, True) if some else Sequence((), mutable=True)


def _dict_comprehension(frame: Frame, node: ast.DictComp) -> Value:
    saved, live, raised = frame.variables, frame.live, frame.raised
    frame.variables = dict(saved)
    some = _generators(frame, node.generators)
    evaluate(frame, node.key)
    value = evaluate(frame, node.value)
    frame.variables = _behind_comprehension(frame, node, saved)
    frame.live, frame.raised = live, raised
    return Mapping({}, value if some else None, inside=frame.number)


def _behind_comprehension(frame: Frame, node: ast.expr, before: dict[str, Value]) -> dict[str, Value]:
    """The variables behind a comprehension, which has its own but for what ``:=`` binds in it, perhaps, and what
    functions do that it calls."""
    names = binds(node)
    if frame.leaves is not None and frame.definition is not None:
        names |= {name for name in bound_inside(frame.definition) if frame.variables.get(name) is not before.get(name)}
    if not names:
        return before
    session, every = frame.session, frame.session.all_lanes
    bound = {name: frame.variables[name] for name in names if name in frame.variables}
    kept = {name: merge(session, before[name], every, bound[name], every) for name in bound if name in before}
    frame.variables = before
    for name, value in {**bound, **kept}.items():
        frame.bind(name, value)
    return before


def _generators(frame: Frame, generators: list[ast.comprehension]) -> bool:
    """Bind what a comprehension runs over; whether there may be anything."""
    some = True
    for generator in generators:
        source = iterated(frame, evaluate(frame, generator.iter))
        if isinstance(source, Sequence):
            item = element_of(frame.session, source)
            some = some and source.items != ()
        elif isinstance(source, Tensor) and not source.maybe:
            item = source.part
        else:
            item = UNKNOWN
        assign(frame, generator.target, item)
        for test in generator.ifs:
            yes, _ = split(frame, test)
            frame.live = yes or frame.live
            narrow(frame, test, True)
    return some


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    return function_value(frame, node)


def _walrus(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    frame.bind(node.target.id, value)
    return value


def _starred(frame: Frame, node: ast.Starred) -> Value:
    return evaluate(frame, node.value)


def _await(frame: Frame, node: ast.Await) -> Value:
    evaluate(frame, node.value)
    return UNKNOWN


def _yield(frame: Frame, node: ast.Yield) -> Value:
    value = evaluate(frame, node.value) if node.value is not None else NONE
    frame.yields.append((frame.live, value))
    return UNKNOWN


def _yield_from(frame: Frame, node: ast.YieldFrom) -> Value:
    source = iterated(frame, evaluate(frame, node.value))
    if not isinstance(source, Sequence) or source.items != ():
        item = element_of(frame.session, source) if isinstance(source, Sequence) else UNKNOWN
        frame.yields.append((frame.live, item))
    return UNKNOWN


def _handle(kind: type[E], handler: Callable[[Frame, E], Value]) -> None:
    _HANDLERS[kind] = handler


_HANDLERS: dict[type[ast.expr], Callable[[Frame, Any], Value]] = {}
_handle(ast.Constant, _constant)
_handle(ast.Name, _name)
_handle(ast.Attribute, _attribute)
_handle(ast.Call, _call)
_handle(ast.BinOp, _binary)
_handle(ast.UnaryOp, _unary)
_handle(ast.Compare, comparison)
_handle(ast.BoolOp, _boolean)
_handle(ast.IfExp, _conditional)
_handle(ast.Subscript, _subscript)
_handle(ast.Slice, _slice)
_handle(ast.Tuple, _tuple)
_handle(ast.List, _tuple)
_handle(ast.Set, _set)
_handle(ast.Dict, _dict)
_handle(ast.ListComp, _comprehension)
_handle(ast.GeneratorExp, _comprehension)
_handle(ast.SetComp, _comprehension)
_handle(ast.DictComp, _dict_comprehension)
_handle(ast.Lambda, _lambda)
_handle(ast.NamedExpr, _walrus)
_handle(ast.Starred, _starred)
_handle(ast.Await, _await)
_handle(ast.Yield, _yield)
_handle(ast.YieldFrom, _yield_from)
_handle(ast.JoinedStr, families.template)
