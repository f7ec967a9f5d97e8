"""What a function gets that nothing in the file calls: one argument a parameter, as far as annotations tell."""

from __future__ import annotations

import ast

from amplint.infer.flow.complex_values import complex_parameters
from amplint.infer.lattice.arguments import Arguments, generalised
from amplint.infer.lattice.dtypes import BITS, Lane, Symbol
from amplint.infer.lattice.joining import unite
from amplint.infer.lattice.values import (
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    Number,
    Origin,
    Partial,
    Sequence,
    Tensor,
    Text,
    TorchName,
    Union,
    Value,
    extreme,
)
from amplint.infer.machine import objects
from amplint.infer.machine.evidence import layers_passed
from amplint.infer.machine.indexing import indexing
from amplint.infer.machine.running import as_promised
from amplint.infer.machine.sizes import sizes
from amplint.infer.names import classes
from amplint.infer.names.annotations import PYTHON_NUMBERS, dtype_promised, is_none, last_name, unquoted
from amplint.infer.names.definitions import Class, Function, Instance
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.infer.state.session import Caller, Session
from amplint.infer.syntax.bodies import dimensioned, unpacked
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import comm_hooks
from amplint.infer.torch_model.handed_modules import layer_promised

_SHAPED = ("Float", "Inexact", "Shaped", "Num")
"""Annotations of jaxtyping, as in ``Float[Tensor, "b n"]``: tensors of a dtype that scenarios decide."""


def argument_values(frame: Frame, function: Function, *, skip: int, rows: frozenset[str] = frozenset()) -> Arguments:
    """Arguments for a function entered from outside; ``skip`` leading parameters are bound otherwise.

    ``rows`` are the parameters that hold the numbers of rows: int64, as tokenizers give.
    """
    spec = function.node.args
    arguments = Arguments()
    positional = [*spec.posonlyargs, *spec.args]
    defaults: dict[str, ast.expr] = dict(
        zip([a.arg for a in positional[len(positional) - len(spec.defaults) :]], spec.defaults, strict=True)
    )
    for parameter in positional[skip:]:
        value = _argument(frame, function, parameter, defaults.get(parameter.arg))
        integral = parameter.arg in rows
        arguments.positional.append(as_promised(frame, value, BITS["int64"]) if integral else value)
    for parameter, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        value = _argument(frame, function, parameter, default)
        integral = parameter.arg in rows
        arguments.keywords[parameter.arg] = as_promised(frame, value, BITS["int64"]) if integral else value
    return arguments


def _argument(frame: Frame, function: Function, parameter: ast.arg, default: ast.expr | None) -> Value:
    if parameter.annotation is None and parameter.arg in unpacked(function.node):
        return UNKNOWN
    outer = Frame(frame.session, function.namespace, closure=function.closure, in_module=frame.in_module)
    if default is None and comm_hooks.takes_bucket(function, parameter):
        return comm_hooks.BUCKET
    if (
        default is not None
        and function.namespace.own
        and (function.node.lineno, parameter.arg) in frame.session.settled.parameters
    ):
        return evaluate(outer, default)
    if isinstance(default, ast.Constant) and default.value is not None and default.value is not Ellipsis:
        kind = PYTHON_NUMBERS.get(type(default.value).__name__)
        if kind:
            written = default.value if isinstance(default.value, (int, float)) else None
            return Number(kind, written, extreme(written))
        return Text(default.value) if isinstance(default.value, str) else UNKNOWN
    if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
        value = generalised(evaluate(outer, default))
        if isinstance(value, Number):
            return value
        if isinstance(value, Instance) and parameter.annotation is not None:
            return _annotated(outer, function, parameter, parameter.annotation) or UNKNOWN
        if isinstance(value, DTypeValue):
            return DTypeValue(tuple(lane._replace(open=True) for lane in value.dtypes), value.written, value.origin)
        layer = isinstance(value, Class) and classes.is_module(value)
        return value if layer or isinstance(value, (TorchName, Function, Partial)) else UNKNOWN
    optional = default is not None
    building = function.name == "__init__" and frame.session.assumptions.usual
    if parameter.annotation is not None:
        annotated = _annotated(outer, function, parameter, parameter.annotation)
        if annotated is not None and annotated is not UNKNOWN:
            return Union((annotated, Const(None))) if optional else annotated
        if annotated is UNKNOWN and not building:
            return Const(None) if optional and _caller(frame.session, function) is Caller.USER else UNKNOWN
    if building:
        layers = layers_passed(outer, function.namespace, parameter.arg)
        if layers is not UNKNOWN:
            return unite(layers, Const(None)) if optional else layers
        if parameter.annotation is not None and optional:
            return Const(None) if _caller(frame.session, function) is Caller.USER else UNKNOWN
    if function.name == "__init__" and default is None and parameter.arg in sizes(outer, function):
        return Number("int")
    return _passed(frame, function, parameter)


def _passed(frame: Frame, function: Function, parameter: ast.arg, *, annotated: bool = False) -> Tensor:
    """A tensor that a caller passes; its dtype's origin is the parameter. No scenario decides that of a complex one."""
    outer = Frame(frame.session, function.namespace, closure=function.closure, in_module=frame.in_module)
    index = parameter.arg in indexing(outer, function)
    caller = _caller(frame.session, function)
    tensor = frame.session.argument(parameter.arg, caller, annotated=annotated, index=index)
    if parameter.arg in complex_parameters(function.namespace.source, function.node):
        tensor = replace(tensor, dtypes=frame.session.unknown)
    if function.name == "__init__":
        frame.session.given.add(id(parameter))
    what = f"`{parameter.arg}` has what the caller passes"
    dim = 1 if annotated or _has_dimensions(function, parameter) else None
    return replace(tensor, dim=dim, origin=Origin(function.namespace.source, parameter, what, tensor.dtypes))


def _has_dimensions(function: Function, parameter: ast.arg) -> bool:
    """Whether a tensor passed for a parameter has dimensions: by what is done with it, or as a module's first input."""
    if parameter.arg in dimensioned(function.node):
        return True
    of_module = function.name == "forward" and classes.is_module(function.owner)
    return of_module and parameter in function.node.args.args[1:2]


def _caller(session: Session, function: Function) -> Caller:
    if not session.assumptions.users:
        return Caller.MODULE
    if id(function.owner.node if function.owner is not None else function.node) in session.roots:
        return Caller.USER
    return Caller.MODULE if classes.is_module(function.owner) else Caller.ANY


def _annotated(frame: Frame, function: Function, parameter: ast.arg, annotation: ast.expr) -> Value | None:
    """The value that an annotation promises; None where it says nothing that is understood."""
    plain = unquoted(annotation)
    if plain is None:
        return None
    dtype = dtype_promised(annotation)
    if dtype is not None:
        promised = Lane(dtype, Symbol(parameter.arg), assumed=True)
        return Tensor((promised,) * frame.session.lanes, 1)
    annotation = plain
    if isinstance(annotation, ast.Subscript):
        head = last_name(annotation.value)
        if head == "Optional":
            return _annotated(frame, function, parameter, annotation.slice)
        if head in ("Tuple", "tuple", "List", "list", "Sequence"):
            return _several(frame, function, parameter, annotation.slice, fixed=head in ("Tuple", "tuple"))
        if head in _SHAPED:
            return _passed(frame, function, parameter, annotated=True)
        return UNKNOWN if head in ("Callable", "Dict", "dict", "Type", "type") else None
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [s for s in (annotation.left, annotation.right) if not is_none(s)]
        return _annotated(frame, function, parameter, sides[0]) if len(sides) == 1 else None
    name = last_name(annotation)
    if name in PYTHON_NUMBERS:
        return Number(PYTHON_NUMBERS[name])
    if name == "str":
        return UNKNOWN
    if name == "device":
        return Device(None)
    if name == "dtype":
        return frame.session.symbolic_dtype(parameter.arg)
    if name == "Tensor":
        return _passed(frame, function, parameter, annotated=True)
    return layer_promised(frame, function, parameter, annotation) or instance_of(frame, annotation)


def _several(frame: Frame, function: Function, parameter: ast.arg, of: ast.expr, *, fixed: bool) -> Sequence:
    """A sequence whose items are what an annotation promises of each; ``fixed``: a tuple, whose items may differ."""
    parts = of.elts if isinstance(of, ast.Tuple) else [of]
    if not parts:
        return Sequence(())
    items = [_annotated(frame, function, parameter, part) or UNKNOWN for part in parts]
    counted = fixed and len(parts) > 1 and not (isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis)
    return Sequence(tuple(items)) if counted else Sequence(None, items[0], not fixed)


def instance_of(frame: Frame, annotation: ast.expr) -> Value | None:
    """An object of the project class that a name says, built with what a caller may pass; else None."""
    cls = evaluate(frame, annotation) if isinstance(annotation, (ast.Name, ast.Attribute)) else None
    if not isinstance(cls, Class) or classes.is_autograd_function(cls):
        return None
    session = frame.session
    of_module = frame.in_module or classes.is_module(cls)
    key = ("annotated", cls.key, of_module)
    found = session.memo.get(key)
    if found is None:
        found = session.memo[key] = Instance(cls, {}, classes.has_unknown_base(cls))
        construct(Frame(session, frame.namespace, in_module=of_module), found)
    return found


def construct(frame: Frame, instance: Instance) -> None:
    """Run an object's constructor with what a caller may pass."""
    constructor = classes.find_member(instance.cls, "__init__")
    arguments = Arguments(unknown=True)
    if isinstance(constructor, Function):
        arguments = argument_values(frame, constructor, skip=1)
    objects.initialize(frame, instance, arguments, ast.copy_location(ast.Name(instance.cls.name), instance.cls.node))
