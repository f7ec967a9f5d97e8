"""Autograd Functions: forward under the ambient autocast, backward with the gradient of what forward returned."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.contexts import AutogradContext
from amplint.infer.lattice.decorators import CustomDecorator, Decorated
from amplint.infer.lattice.dtypes import LOW
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import (
    UNKNOWN,
    Builtin,
    External,
    Origin,
    Partial,
    Sequence,
    Tensor,
    TorchName,
    Union,
    Value,
)
from amplint.infer.machine.calls import MAX_APPLIED, apply_autograd, call_value, leading_arguments
from amplint.infer.machine.entries import argument_values
from amplint.infer.machine.running import run_function
from amplint.infer.names import classes
from amplint.infer.names.definitions import Class, Function
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.infer.state.function_facts import AutogradFunction, DecoratorFact, Sensitive
from amplint.infer.syntax.arithmetic import is_only_computed_with
from amplint.infer.syntax.bodies import FunctionNode, nodes_below
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.session import Session


def autograd_facts(top: Frame, cls: Class) -> AutogradFunction:
    """Run an autograd Function's forward and backward and say how they are decorated."""
    forward, backward = _method(cls, "forward"), _method(cls, "backward")
    session = top.session
    context = AutogradContext()
    result: Value | None = None
    ambient = Frame(session, top.namespace, autocast=session.ambient, in_module=True)
    with _afresh(session), session.recorder.watching() as in_forward:
        if forward is not None:
            leading = leading_arguments(cls, "forward", context)
            arguments = argument_values(ambient, forward, skip=len(leading))
            _forget_numbers(arguments, forward.node, len(leading), _node(cls, "backward"))
            result = apply_autograd(ambient, cls, arguments, context)
            if id(forward.node) not in session.ran:
                run_function(ambient, forward, arguments.shifted(*((value, None) for value in leading)))
            _setup_context(ambient, cls, context, arguments, result)
    with _afresh(session), session.recorder.watching() as in_backward:
        if backward is not None:
            _run_backward(ambient, cls, backward, context, result)
    inner = Frame(session, top.namespace, closure=cls.closure)
    return AutogradFunction(
        node=cls.node,
        forward=_node(cls, "forward"),
        backward=_node(cls, "backward"),
        forward_decorators=_decorators(inner, _node(cls, "forward")),
        backward_decorators=_decorators(inner, _node(cls, "backward")),
        setup_context=_node(cls, "setup_context"),
        sensitive_forward=tuple(in_forward.sensitive.values()),
        sensitive_backward=tuple(in_backward.sensitive.values()),
        rounded=any(_is_rounded(session, value) for value in (result, context.saved, *context.attributes.values()))
        or any(_meets_another(session, operation) for operation in in_backward.sensitive.values()),
        settled=in_backward.settled,
    )


def _forget_numbers(
    arguments: Arguments, forward: FunctionNode, leading: int, backward: ast.FunctionDef | None
) -> None:
    """Take what may be a number for unknown: backward gives no gradient for it, and forward only computes with it,
    or keeps it."""
    spec = forward.args
    parameters = [*spec.posonlyargs, *spec.args][leading:]
    without = _without_gradient(backward) if backward is not None else frozenset()
    for place in without & set(range(min(len(parameters), len(arguments.positional)))):
        if is_only_computed_with(forward, parameters[place].arg):
            arguments.positional[place] = UNKNOWN


def _without_gradient(backward: ast.FunctionDef) -> frozenset[int]:
    """The places of forward's arguments for which every ``return`` of backward has ``None``."""
    returned = [node.value for node in nodes_below(backward) if isinstance(node, ast.Return)]
    found = [
        {place for place, each in enumerate(value.elts) if isinstance(each, ast.Constant) and each.value is None}
        for value in returned
        if isinstance(value, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in value.elts)
    ]
    return frozenset(set.intersection(*found)) if found and len(found) == len(returned) else frozenset()


@contextmanager
def _afresh(session: Session) -> Iterator[None]:
    """Follow each call that is made inside the ``with`` block, also where an equal one was followed before."""
    memo, calls = session.memo, session.calls
    session.memo, session.calls = {}, {}
    try:
        yield
    finally:
        session.memo, session.calls = memo, calls


def _meets_another(session: Session, operation: Sensitive) -> bool:
    """Whether an operation of backward is given the gradient and a tensor that may have another dtype, of 16 bit."""
    values = [operand.value for operand in operation.operands]
    lanes = [{value.dtypes[lane] for value in values} for lane, state in enumerate(session.ambient) if state.on]
    met = any(len(together) > 1 and any(lane.mask & LOW for lane in together) for together in lanes)
    return met and any(value.gradient for value in values)


def _is_rounded(session: Session, value: Value | None) -> bool:
    """Whether autocast may have given a value its dtype: it is a tensor of 16 bit, whatever callers pass, or of an
    unknown dtype."""
    if isinstance(value, Union):
        return any(_is_rounded(session, option) for option in value.options)
    if isinstance(value, Sequence):
        return value.items is None or any(_is_rounded(session, item) for item in value.items)
    if not isinstance(value, Tensor):
        return value is UNKNOWN
    lanes = [lane for lane, state in zip(value.dtypes, session.ambient, strict=True) if state.on]
    return any(lane.certain & LOW or not lane.known for lane in lanes)


def confirm(top: Frame, cls: Class) -> bool:
    """Drop what disagrees in a Function for some callers only, and for none of those that apply it here.

    That is known where the file applies it in modules alone, or where autocast is off, each time with operands of known
    dtypes. The answer is whether autocast may reach it.
    """
    session = top.session
    applied = list(session.applied.get(id(cls.node), {}).values())
    backward = _method(cls, "backward")
    if not applied or len(applied) > MAX_APPLIED or backward is None or None in applied:
        return True
    if {id(how.node) for how in applied if how is not None} != _applications(cls):
        return True
    with _afresh(session), session.recorder.confirming(top, cls.node):
        for how in applied:
            assert how is not None
            frame = Frame(session, top.namespace, autocast=how.autocast, live=how.live, in_module=True)
            context = AutogradContext()
            result = apply_autograd(frame, cls, how.arguments, context)
            _setup_context(frame, cls, context, how.arguments, result)
            _run_backward(frame, cls, backward, context, result)
    return any(how.lanes for how in applied if how is not None)


def _applications(cls: Class) -> set[int]:
    """``id`` of the nodes of the calls that apply a Function, anywhere in its file."""
    found = set()
    for node in nodes_below(cls.namespace.tree):
        if isinstance(node, ast.Call) and _is_apply(node.func, cls):
            found.add(id(node))
    return found


def _is_apply(node: ast.expr, cls: Class) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "apply":
        return False
    return isinstance(node.value, ast.Name) and node.value.id == cls.name


def _setup_context(frame: Frame, cls: Class, context: AutogradContext, arguments: Arguments, result: Value) -> None:
    setup = _method(cls, "setup_context")
    if setup is not None:
        inputs = Sequence(tuple(arguments.positional))
        call_value(frame, setup, Arguments([context, inputs, result]), ast.copy_location(ast.Name(cls.name), cls.node))


def _run_backward(
    ambient: Frame, cls: Class, backward: Function, context: AutogradContext, result: Value | None
) -> None:
    session = ambient.session
    member = classes.find_member(cls, "backward")
    decorated = _role(member) == "backward"
    inside = session.ambient if decorated and not _casts_inputs(cls) else session.no_autocast
    spec = backward.node.args
    leading = [value for value in leading_arguments(cls, "backward", context) if value is not None]
    parameters = [*spec.posonlyargs, *spec.args][len(leading) :]
    gradients = [_gradient(ambient, result, index, parameter) for index, parameter in enumerate(parameters)]
    arguments = Arguments([*leading, *gradients])
    if spec.vararg is not None:
        arguments.positional.append(_gradient(ambient, result, 0, spec.vararg))
    frame = Frame(session, ambient.namespace, autocast=inside, live=ambient.live, backward=True, in_module=False)
    call_value(frame, backward, arguments, ast.copy_location(ast.Name(cls.name), cls.node))


def _gradient(frame: Frame, result: Value | None, index: int, parameter: ast.arg) -> Tensor:
    """The gradient of one output, as a parameter of backward: autograd gives it the output's dtype."""
    for option in options_of(result) if result is not None else ():
        value: Value = option
        if isinstance(option, Sequence) and option.items is not None and index < len(option.items):
            value = option.items[index]
        for inner in options_of(value):
            if isinstance(inner, Tensor) and (index == 0 or isinstance(option, Sequence)):
                parents = (inner.origin,) if inner.origin is not None else ()
                origin = Origin(frame.namespace.source, parameter, "", inner.dtypes, parents)
                return replace(inner, origin=origin, gradient=True, leaf=False, maybe=False)
    return Tensor(frame.session.unknown, None, gradient=True)


def _method(cls: Class, name: str) -> Function | None:
    value = classes.find_member(cls, name)
    while isinstance(value, Decorated):
        value = value.function
    if isinstance(value, Function):
        return value
    node = _node(cls, name)
    return Function(node, cls.namespace, cls.closure, cls, name) if node is not None else None


def _node(cls: Class, name: str) -> ast.FunctionDef | None:
    for statement in cls.node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    return None


def _role(value: Value | None) -> str | None:
    while isinstance(value, Decorated):
        if value.role is not None:
            return value.role
        value = value.function
    return None


def _casts_inputs(cls: Class) -> bool:
    value = classes.find_member(cls, "forward")
    while isinstance(value, Decorated):
        if value.cast_inputs is not None:
            return True
        value = value.function
    return False


def _decorators(frame: Frame, node: ast.FunctionDef | None) -> tuple[DecoratorFact, ...]:
    facts = []
    for decorator in node.decorator_list if node is not None else ():
        called = isinstance(decorator, ast.Call)
        keywords = tuple(k.arg for k in decorator.keywords if k.arg) if isinstance(decorator, ast.Call) else ()
        name = _decorator_name(evaluate(frame, decorator))
        if name is None and isinstance(decorator, ast.Call):
            name = _decorator_name(evaluate(frame, decorator.func))
        facts.append(DecoratorFact(decorator, name, keywords, called))
    return tuple(facts)


def _decorator_name(value: Value) -> str | None:
    """A dotted name for a decorator, None where it is not known what it does."""
    if isinstance(value, TorchName):
        return value.name
    if isinstance(value, CustomDecorator) and value.role is not None:
        return "torch.amp.custom_fwd" if value.role == "forward" else "torch.amp.custom_bwd"
    if isinstance(value, Builtin) and value.receiver is None:
        return value.name
    if isinstance(value, External):
        return None
    if isinstance(value, Partial):
        return _decorator_name(value.callee)
    if isinstance(value, Union):
        names = {(_decorator_name(option) or "").rsplit(".", 1)[-1] for option in value.options}
        return _decorator_name(value.options[0]) if len(names) == 1 and "" not in names else None
    return None
