"""Functions of the project: followed where they matter, each once for every combination of arguments that does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from amplint.infer.lattice.arguments import Arguments, usually_a
from amplint.infer.lattice.contexts import AutogradContext
from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.dtypes import Lane, Symbol
from amplint.infer.lattice.joining import merge, options_of
from amplint.infer.lattice.templated import Template
from amplint.infer.lattice.values import (
    NEVER,
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    Device,
    DTypeValue,
    Mapping,
    Number,
    Partial,
    Sequence,
    Tensor,
    TensorMethod,
    Text,
    TorchName,
    Union,
    Value,
)
from amplint.infer.names import classes
from amplint.infer.names.annotations import dtype_promised, number_promised, promised, refined
from amplint.infer.names.definitions import Bound, Class, Function
from amplint.infer.state.dispatch import evaluate, execute
from amplint.infer.state.frame import Frame, Returned
from amplint.infer.state.session import MAX_DEPTH, Known, OutOfBudget, made_before
from amplint.infer.syntax.bodies import once_for_each_node
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import drift
from amplint.infer.torch_model.handed_modules import layer_promised

if TYPE_CHECKING:
    from collections.abc import Hashable

    from amplint.infer.syntax.bodies import FunctionNode


def run_function(
    frame: Frame,
    function: Function,
    arguments: Arguments,
    *,
    receiver: Value | None = None,
) -> Value:
    """Interpret a function's body for these arguments, or recall what it gave for equal ones.

    A constructor runs where its caller stands: a script that builds a model is not inside it.
    """
    session = frame.session
    if session.recorder.concerns(frame) and _is_asked_for(frame.calling, function):
        session.recorder.passed(frame.calling, fits=_fit(function, arguments))
    if frame.depth >= MAX_DEPTH:
        session.recorder.unfinished.add(id(function.node))
        return UNKNOWN
    if not worth_following(frame, function, arguments, receiver):
        computes = isinstance(function.node, ast.Lambda) or function.namespace.body(function.node).computes
        if computes and may_carry_tensor(arguments):
            session.recorder.unsettled()
        return refined(_handed_back(function, arguments), getattr(function.node, "returns", None))
    arguments = arguments.generalised()
    if session.running.get(id(function.node), 0) >= MAX_RECURSION:
        arguments = _anything(arguments)
    constructing = frame.constructing if receiver is not None and receiver is frame.constructing else None
    building = frame.making or frame.constructing is not None
    of_module = not building and classes.is_module(function.owner)
    inner = Frame(
        session,
        function.namespace,
        closure=function.closure,
        owner=function.owner,
        autocast=frame.autocast,
        region=frame.region,
        live=frame.live,
        depth=frame.depth + 1,
        in_module=frame.in_module or of_module,
        backward=frame.backward,
        constructing=constructing,
        receiver=receiver,
    )
    inner.function, inner.definition = id(function.node), function.node
    inner.caller, inner.outer = frame, function.frame
    inner.late = function.late
    body = None if isinstance(function.node, ast.Lambda) else function.namespace.body(function.node)
    if body is not None and body.defines:
        inner.leaves = []
    inner.adding = frame.adding and constructing is not None
    inner.making = frame.making or (frame.constructing is not None and classes.is_module(frame.constructing.cls))
    inner.left = (frame, frame.calling) if frame.namespace.own and frame.calling is not None else frame.left
    equal = (
        function.key,
        arguments.key,
        inner.autocast,
        inner.live,
        id(inner.region.node) if inner.region is not None else None,
        inner.in_module,
        inner.making,
        inner.backward,
        session.from_user,
        _found_now(inner) if function.late else (),
    )
    session.called_under.setdefault(id(function.node), (inner.autocast, inner.region))
    remember = constructing is None and AutogradContext not in map(type, arguments.positional)
    key = session.numbers.setdefault(equal, len(session.numbers))
    known = session.calls.get(key) if remember else None
    if known is not None and session.holds(known):
        session.recorder.repeated(frame, key)
        return _came_back(frame, known)
    if key in session.active:
        session.project.cut += 1
        return UNKNOWN
    session.active.add(key)
    session.running[id(function.node)] = session.running.get(id(function.node), 0) + 1
    if inner.constructing is None:
        session.recorder.began(inner, function.node)
    if inner.in_module:
        session.of_modules.add(id(function.node))
    if all(_known(value) for value in arguments.positional) and not arguments.unknown:
        session.ran.add(id(function.node))
    elif receiver in (None, frame.receiver) and any(map(_tells, (*arguments.positional, *arguments.keywords.values()))):
        session.told.add(id(function.node))
    session.keep_alive.append((function, arguments))
    version, back = session.version, inner.live
    try:
        inner.variables = bind(inner, function, arguments)
        if isinstance(function.node, ast.Lambda):
            result = evaluate(inner, function.node.body)
            back, raised = inner.live, inner.raised
        else:
            execute(inner, function.node.body)
            if inner.live:
                inner.returns.append(Returned(inner.live, NONE, raised=inner.raised))
            generates = body is not None and body.generator
            result = _yielded(inner, function.node) if generates else inner.result()
            back = back if generates else inner.back
            raised = 0 if generates else inner.failing
            result = refined(result, function.node.returns)
            if of_module and function.name == "forward":
                drift.returned(inner, result)
            if len(inner.returns) > 1:
                drift.branches(inner)
    except (OutOfBudget, RecursionError):
        session.recorder.unfinished.add(id(function.node))
        raise
    finally:
        session.active.discard(key)
        session.running[id(function.node)] -= 1
    if result is NEVER and _is_abstract(function.node):
        result, back, raised = UNKNOWN, frame.live, 0
    if inner.leaves:
        inner.variables = inner.met(*inner.leaves, inner.end()).variables
    reads = frozenset([place for place in inner.reads if made_before(place, inner.number, inner.makes)])
    known = Known(result, version, reads, inner.thrown, frozenset(inner.found), frozenset(inner.makes), back, raised)
    if remember and not inner.writes_around and not inner.brings:
        session.calls[key] = known
        session.recorder.ended(inner, key)
    return _came_back(frame, known)


MAX_RECURSION = 3
"""Calls of a function inside each other that are told apart by the tensors that they get."""


def _anything(arguments: Arguments) -> Arguments:
    """The same arguments with anything in the place of tensors."""
    keywords = {name: UNKNOWN if carries_tensor(value) else value for name, value in arguments.keywords.items()}
    values = [UNKNOWN if carries_tensor(value) else value for value in arguments.positional]
    return Arguments(values, keywords, arguments.nodes, arguments.unknown, rest=arguments.rest and UNKNOWN)


def _found_now(frame: Frame) -> tuple[Hashable, ...]:
    """What the variables hold that may have changed since the function that runs was defined."""
    found = [(name, frame.around(name)) for name in sorted(frame.late)]
    return tuple([(name, value.key) for name, value in found if value is not None])


def _yielded(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """What a generator gives one after another."""
    if isinstance(node, ast.AsyncFunctionDef) or not frame.yields:
        return UNKNOWN
    live, element = frame.yields[0]
    for other_live, other in frame.yields[1:]:
        element = merge(frame.session, element, live, other, other_live)
        live |= other_live
    return Sequence(None, element)


def _came_back(frame: Frame, known: Known) -> Value:
    """The result of a call; in the scenarios in which it raises on every path, nothing behind it runs."""
    frame.reads |= known.reads
    frame.makes |= known.makes
    if known.found:
        frame.found.update(found for found in known.found if found[0] is not frame)
    if known.thrown:
        frame.thrown = True
        frame.may_raise(thrown=True)
    if known.result is NEVER:
        frame.live = 0
        return UNKNOWN
    frame.live &= known.back
    frame.raised |= known.raised
    return known.result


def _is_abstract(node: FunctionNode) -> bool:
    """Whether a function raises because a class below this one is to write it."""
    raised = (s.exc for s in node.body if isinstance(s, ast.Raise)) if not isinstance(node, ast.Lambda) else ()
    names = (exc.func if isinstance(exc, ast.Call) else exc for exc in raised)
    return any(isinstance(name, ast.Name) and name.id == "NotImplementedError" for name in names)


def _handed_back(function: Function, arguments: Arguments) -> Value:
    """What a function gives that is not followed: its first argument, where it returns that."""
    if isinstance(function.node, ast.Lambda) or not function.namespace.body(function.node).identity:
        return UNKNOWN
    return arguments.positional[0] if arguments.positional else UNKNOWN


SMALL_ANSWER = 28
"""Syntax nodes up to which a function of another file is followed though its annotation says that it gives a number."""
SMALL_BODY = 85
"""Syntax nodes up to which a function is followed whatever it does: helpers such as ``exists(x)``, ``pair(n)``."""


CHOOSING_BODY = 400
"""Syntax nodes up to which a function is followed that gets a class or a choice: factories of layers."""


def worth_following(frame: Frame, function: Function, arguments: Arguments, receiver: Value | None) -> bool:
    """Whether a call can matter to dtypes.

    It does where the body computes with tensors, gets one, makes or wraps a function, or is small. Docstring builders,
    registries and configuration code are most of what model code calls, and none of its dtypes.
    """
    if isinstance(function.node, ast.Lambda):
        return True
    body = function.namespace.body(function.node)
    if not function.namespace.own and not body.stores and body.size > SMALL_ANSWER:
        returns = function.node.returns
        if not body.answers or (returns is not None and isinstance(promised(returns), Number)):
            return False
    if body.computes or body.makes or body.size <= SMALL_BODY:
        return True
    values = (*arguments.positional[receiver is not None :], *arguments.keywords.values())
    if body.defines and any(isinstance(v, (Function, Decorated, Bound)) for v in values):
        return True
    if body.size <= CHOOSING_BODY and any(map(_selects, values)):
        return True
    return any(map(carries_tensor, values))


def _selects(value: Value) -> bool:
    """Whether a value is a class, or a string that a caller may choose: such as select a layer."""
    return any(isinstance(option, (Class, TorchName, Partial, Text)) for option in options_of(value))


def carries_tensor(value: Value) -> bool:
    """Whether a value is a tensor or directly holds one."""
    if isinstance(value, Tensor):
        return True
    if isinstance(value, Sequence):
        return any(isinstance(item, Tensor) for item in (value.items if value.items is not None else (value.element,)))
    if isinstance(value, Mapping):
        return any(isinstance(item, Tensor) for item in value.items.values())
    return isinstance(value, Union) and any(isinstance(option, Tensor) for option in value.options)


def may_carry_tensor(arguments: Arguments) -> bool:
    """Whether an argument may be a tensor, or hold one."""
    values = (*arguments.positional, *arguments.keywords.values())
    return arguments.unknown or not all(isinstance(value, _NO_TENSORS) for value in values)


_NO_TENSORS = (Const, Device, DTypeValue, Number, Template, Text)


def _known(value: Value) -> bool:
    """Whether an argument says enough for the call to stand for all callers."""
    return value is not UNKNOWN and not (isinstance(value, Tensor) and any(not lane.known for lane in value.dtypes))


def _tells(value: Value) -> bool:
    """Whether an argument may be a tensor whose dtype is known in some scenario."""
    return any(isinstance(o, Tensor) and any(lane.mask for lane in o.dtypes) for o in options_of(value))


class _Parameters(NamedTuple):
    """The parameters of a function: the names of those that a position fills, all, and the defaults that some have."""

    names: tuple[str, ...]
    every: tuple[ast.arg, ...]
    defaults: dict[str, ast.expr]


@once_for_each_node
def _parameters(node: FunctionNode) -> _Parameters:
    spec = node.args
    placed = (*spec.posonlyargs, *spec.args)
    names = tuple([a.arg for a in placed])
    defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
    defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None})
    return _Parameters(names, (*placed, *spec.kwonlyargs), defaults)


def _is_asked_for(call: ast.expr | None, function: Function) -> TypeGuard[ast.Call]:
    """Whether a call spells a method of an object by its name, and each argument: no constructor, of which another base
    may have one, and nothing that a decorator may put another in the place of."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or function.owner is None:
        return False
    if isinstance(function.node, ast.Lambda) or function.node.decorator_list:
        return False
    if call.func.attr != function.name or function.name == "__init__":
        return False
    return all(keyword.arg for keyword in call.keywords) and not any(isinstance(a, ast.Starred) for a in call.args)


def _fit(function: Function, arguments: Arguments) -> bool:
    """Whether a function takes these arguments."""
    spec, given = function.node.args, len(arguments.positional)
    names, every, defaults = _parameters(function.node)
    if given > len(names) and spec.vararg is None:
        return False
    if spec.kwarg is None and not arguments.keywords.keys() <= {parameter.arg for parameter in every}:
        return False
    if arguments.unknown or arguments.rest is not None:
        return True
    filled = {*names[:given], *arguments.keywords, *defaults}
    return all(parameter.arg in filled for parameter in every)


def bind(frame: Frame, function: Function, arguments: Arguments) -> dict[str, Value]:
    """Parameters to values: arguments, defaults, the rest."""
    spec = function.node.args
    names, every, defaults = _parameters(function.node)
    bound: dict[str, Value] = dict(zip(names, arguments.positional, strict=False))
    if spec.vararg is not None:
        extra = tuple(arguments.positional[len(names) :])
        unknown = Sequence(None, arguments.rest or UNKNOWN)
        bound[spec.vararg.arg] = unknown if arguments.unknown else Sequence(extra)
    keywords = dict(arguments.keywords)
    for parameter in every if keywords else ():
        if parameter.arg in keywords and parameter.arg not in bound:
            bound[parameter.arg] = keywords.pop(parameter.arg)
    if spec.kwarg is not None:
        other = UNKNOWN if arguments.unknown else None
        bound[spec.kwarg.arg] = Mapping(dict(keywords.items()), other, inside=frame.number)
    if arguments.rest is not None:
        bound.update({name: arguments.rest for name in names[len(arguments.positional) :] if name not in bound})
    outer: Frame | None = None
    for parameter in every:
        name = parameter.arg
        if name not in bound:
            default = defaults.get(name)
            if default is None or arguments.unknown:
                bound[name] = UNKNOWN
            else:
                outer = outer or Frame(frame.session, function.namespace, closure=function.closure)
                bound[name] = usually_a(evaluate(outer, default))
    for parameter in every:
        if _says_nothing(bound[parameter.arg]):
            promise = number_promised(parameter.annotation, defaults.get(parameter.arg))
            if promise is UNKNOWN and function.name != "__init__":
                promise = layer_promised(frame, function, parameter) or UNKNOWN
            bound[parameter.arg] = bound[parameter.arg] if promise is UNKNOWN else promise
        elif parameter.annotation is not None and _may_be_tensor(bound[parameter.arg]):
            promise = number_promised(parameter.annotation, None)
            bound[parameter.arg] = bound[parameter.arg] if promise is UNKNOWN else promise
        dtype = dtype_promised(parameter.annotation) if parameter.annotation is not None else None
        if dtype is not None:
            bound[parameter.arg] = as_promised(frame, bound[parameter.arg], dtype)
    return bound


def as_promised(frame: Frame, value: Value, dtype: int) -> Value:
    """The same with every tensor in it, that a caller was only assumed to have, of the dtype that is promised."""
    if isinstance(value, Union):
        return Union(tuple(as_promised(frame, option, dtype) for option in value.options))
    if not isinstance(value, Tensor) or not (value.maybe or any(lane.assumed for lane in value.dtypes)):
        return value
    dtypes = (Lane(dtype, Symbol("promised"), assumed=True),) * frame.session.lanes
    origin = replace(value.origin, dtypes=dtypes) if value.origin is not None else None
    return replace(value, dtypes=dtypes, maybe=False, origin=origin)


def _may_be_tensor(value: Value) -> bool:
    """Whether a value is what a caller passes, a tensor or anything else."""
    return isinstance(value, Tensor) and value.maybe


def _says_nothing(value: Value) -> bool:
    """Whether a value is not known, or an attribute of what is not."""
    if isinstance(value, TensorMethod):
        return value.tensor.maybe
    return value is UNKNOWN or (isinstance(value, Builtin) and value.name.startswith("unknown."))
