"""What is known of variables behind a test: of which class, dtype or kind they are in the branch that runs."""

from __future__ import annotations

import ast

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.dtypes import INTEGERS, Lane, equal_lanes
from amplint.infer.lattice.joining import options_of, unite
from amplint.infer.lattice.kinds import KINDS
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Const,
    Layer,
    Tensor,
    TorchName,
    Union,
)
from amplint.infer.machine.answers import answer, held_test
from amplint.infer.machine.builtins import BUILTIN_NAMES, is_instance
from amplint.infer.machine.choices import choose
from amplint.infer.machine.comparing import dtype_options
from amplint.infer.machine.entries import instance_of
from amplint.infer.machine.guards import none_test, split
from amplint.infer.machine.running import bind
from amplint.infer.names.classes import is_module
from amplint.infer.names.definitions import Bound, Class, Function
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.infer.state.meeting import binds
from amplint.infer.syntax.bodies import nodes_below, only_answer
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.handed_modules import handed, is_layer_class


def narrow(frame: Frame, test: ast.expr, truth: bool) -> None:
    """Refine the variables that a test speaks about, in the branch where it came out as ``truth``."""
    if frame.repeated is None or frame.repeated:
        answer(frame, test, truth)
    if isinstance(test, (ast.Attribute, ast.Compare)):
        choose(frame, test, truth)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(frame, test.operand, not truth)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == truth:
            for number, operand in enumerate(test.values):
                if not any(binds(later) for later in test.values[number + 1 :]):
                    narrow(frame, operand, truth)
        elif all(map(_may_be_asked_again, test.values)):
            _narrow_by_one(frame, test.values, truth)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _narrow_comparison(frame, test.left, test.ops[0], test.comparators[0], truth)
        if isinstance(test.ops[0], (ast.Eq, ast.In) if truth else (ast.NotEq, ast.NotIn)):
            _narrow_text(frame, test.left, test.comparators[0])
    elif isinstance(test, ast.Name):
        held = held_test(frame, test.id)
        if held is not None:
            narrow(frame, held, truth)
        if truth:
            _narrow_none(frame, test, False)
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in KINDS:
        _narrow_kind(frame, test, test.func, KINDS[test.func.attr], truth)
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance":
        if len(test.args) == 2:
            _narrow_type(frame, test.args[0], test.args[1], truth)
    elif isinstance(test, ast.Call) and getattr(test.func, "id", "") not in BUILTIN_NAMES:
        _narrow_by_called(frame, test, truth)


def _may_be_asked_again(test: ast.expr) -> bool:
    """Whether a test can be made a second time: a comparison, ``isinstance`` or what asks for a kind of dtype, which
    calls nothing besides and binds nothing."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _may_be_asked_again(test.operand)
    if binds(test) or any(isinstance(node, ast.Call) and node is not test for node in nodes_below(test)):
        return False
    if isinstance(test, ast.Call):
        func = test.func
        return func.id == "isinstance" if isinstance(func, ast.Name) else getattr(func, "attr", "") in KINDS
    return isinstance(test, ast.Compare) and len(test.ops) == 1


def _narrow_by_one(frame: Frame, tests: list[ast.expr], truth: bool) -> None:
    """Refine the variables where one of several tests came out as ``truth``, and those before it did not.

    What was taken for a tensor and is none is taken for None.
    """
    start, ends = frame.point(), []
    for test in tests:
        reached = frame.point()
        so, otherwise = split(frame, test) if truth else reversed(split(frame, test))
        frame.live &= so
        narrow(frame, test, truth)
        tensor, found = _asked_for_tensor(frame, test)
        if tensor is not None and found is not truth:
            frame.variables[tensor] = NONE
        ends.append(frame.end())
        frame.go_on(reached)
        frame.live &= otherwise
        narrow(frame, test, not truth)
    met = frame.met(*ends)
    frame.go_on(start._replace(variables=met.variables) if met.live else start)


def _asked_for_tensor(frame: Frame, test: ast.expr) -> tuple[str | None, bool]:
    """The variable of which a test asks whether it is a tensor, if it was taken for one, and how it comes out then."""
    if isinstance(test, ast.UnaryOp):
        tensor, found = _asked_for_tensor(frame, test.operand)
        return tensor, not found
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and len(test.args) == 2:
        tested, kind = test.args
        if isinstance(tested, ast.Name) and isinstance(frame.variables.get(tested.id), Tensor):
            cls = evaluate(frame, kind)
            return (tested.id if isinstance(cls, TorchName) and cls.name == "torch.Tensor" else None), True
    return None, True


def _narrow_kind(frame: Frame, call: ast.Call, method: ast.Attribute, kinds: int, truth: bool) -> None:
    """``x.is_floating_point()`` and ``torch.is_floating_point(x)``: of what is unknown, integers are left if not."""
    asked = call.args[0] if call.args else method.value
    value = frame.variables.get(asked.id) if isinstance(asked, ast.Name) else None
    if not isinstance(asked, ast.Name) or not (isinstance(value, Tensor) or value is UNKNOWN):
        return
    tensor = value if isinstance(value, Tensor) else Tensor(frame.session.unknown, None)
    lanes = []
    for lane in tensor.dtypes:
        kept = lane.mask & (kinds if truth else ~kinds) if lane.known else 0
        if kept:
            lanes.append(lane._replace(mask=kept))
        elif lane.known or truth:
            lanes.append(lane)
        else:
            lanes.append(Lane(INTEGERS & ~kinds, assumed=True))
    if lanes != list(tensor.dtypes):
        frame.variables[asked.id] = _with_dtypes(tensor, tuple(lanes))


def _narrow_comparison(frame: Frame, left: ast.expr, op: ast.cmpop, right: ast.expr, truth: bool) -> None:
    equal = isinstance(op, (ast.Eq, ast.Is, ast.In)) == truth
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        if isinstance(left, ast.Name):
            _narrow_none(frame, left, equal)
        return
    if not isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)):
        return
    one, other = _tensor_of(frame, left), _tensor_of(frame, right)
    if equal and one is not None and other is not None:
        lanes = tuple(map(equal_lanes, one[1].dtypes, other[1].dtypes))
        for name, tensor in (one, other):
            frame.note(name, _with_dtypes(tensor, lanes))
        return
    if one is None and other is not None and not isinstance(op, (ast.In, ast.NotIn)):
        one, right = other, left
    if one is None:
        return
    name, tensor = one
    options = dtype_options(evaluate(frame, right))
    if options is None:
        return
    narrowed = _equal_lane if equal else _unlike_lane
    lanes = tuple(narrowed(lane, [option[number] for option in options]) for number, lane in enumerate(tensor.dtypes))
    frame.note(name, _with_dtypes(tensor, lanes))


def _narrow_text(frame: Frame, name: ast.expr, right: ast.expr) -> None:
    """What a variable is of which nothing is known, or that was taken for a tensor, where it equals a string, or is one
    of several."""
    given = right.elts if isinstance(right, (ast.List, ast.Tuple, ast.Set)) else [right]
    texts = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    value = frame.variables.get(name.id) if isinstance(name, ast.Name) else None
    if isinstance(name, ast.Name) and (value is UNKNOWN or isinstance(value, Tensor)) and len(texts) == len(given) > 0:
        frame.note(name.id, unite(*map(Const, texts)))


def _tensor_of(frame: Frame, expression: ast.expr) -> tuple[str, Tensor] | None:
    """The variable and its tensor in ``x.dtype`` or ``x.y.dtype``, of a dtype that is not known where it may be
    anything."""
    if not (isinstance(expression, ast.Attribute) and expression.attr == "dtype"):
        return None
    place = _place_of(expression.value)
    if place is None:
        return None
    value = evaluate(frame, expression.value) if "." in place else frame.variables.get(place)
    options = options_of(value) if value is not None else ()
    tensors = [option for option in options if isinstance(option, Tensor)]
    if len(tensors) != 1:
        return None
    return place, Tensor(frame.session.unknown, None) if UNKNOWN in options else tensors[0]


def _place_of(node: ast.expr) -> str | None:
    """The name under which what a variable, or an attribute of a variable's object, holds is kept."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _with_dtypes(tensor: Tensor, lanes: tuple[Lane, ...]) -> Tensor:
    return Tensor(lanes, tensor.dim, tensor.origin, False, tensor.explicit, tensor.leaf, tensor.gradient)


def _equal_lane(lane: Lane, options: list[Lane]) -> Lane:
    """A dtype that was found to be one of several."""
    if len(options) == 1:
        return equal_lanes(lane, options[0])
    if not all(option.exact for option in options):
        return lane
    mask = 0
    for option in options:
        mask |= option.mask
    return lane._replace(mask=lane.mask & mask or mask) if lane.known else lane


def _unlike_lane(lane: Lane, options: list[Lane]) -> Lane:
    """A dtype that was found to be none of several."""
    if not all(option.exact for option in options):
        return lane
    mask = lane.mask
    for option in options:
        mask &= ~option.mask
    return lane._replace(mask=mask) if mask else lane


def _narrow_none(frame: Frame, name: ast.Name, is_none: bool) -> None:
    value = frame.variables.get(name.id)
    if value is None:
        return
    options = options_of(value)
    if len(options) < 2:
        return
    kept = [o for o in options if (type(o) is Const and o.value is None) == is_none or none_test(o, 1) == (1, 1)]
    if kept:
        marked = [replace(o, optional=True) if isinstance(o, Tensor) and not is_none else o for o in kept]
        frame.variables[name.id] = unite(*marked)


def _narrow_type(frame: Frame, tested: ast.expr, kind: ast.expr, truth: bool) -> None:
    """What is unknown, or was taken for a tensor, is the layer or module that ``isinstance`` found it to be; of several
    values those are left that may be, or not be, of the class."""
    if not isinstance(tested, ast.Name):
        return
    value = frame.variables.get(tested.id)
    if isinstance(value, Union):
        cls = evaluate(frame, kind)
        kept = [option for option in value.options if is_instance(option, cls) is not (not truth)]
        frame.variables[tested.id] = unite(*kept) if kept else value
    handed_on = isinstance(value, Layer) and value.span is None
    if not truth or value is None or not (value is UNKNOWN or isinstance(value, Tensor) or handed_on):
        return
    cls = evaluate(frame, kind)
    if is_layer_class(cls):
        frame.variables[tested.id] = handed(frame, cls, kind)
    elif isinstance(cls, Class) and is_module(cls):
        frame.variables[tested.id] = instance_of(frame, kind) or value


def _narrow_by_called(frame: Frame, node: ast.Call, truth: bool) -> None:
    """Refine the variables passed to a function that gives nothing but a test of its parameters."""
    callee = evaluate(frame, node.func)
    function = callee.function if isinstance(callee, Bound) else callee
    test = only_answer(function.node) if isinstance(function, Function) else None
    if test is None or not isinstance(function, Function) or any(isinstance(a, ast.Starred) for a in node.args):
        return
    first = [callee.instance] if isinstance(callee, Bound) else []
    values = [evaluate(frame, argument) for argument in node.args]
    inner = Frame(frame.session, function.namespace, closure=function.closure, live=frame.live, depth=frame.depth + 1)
    inner.variables = bind(inner, function, Arguments([*first, *values]))
    names = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)][len(first) :]
    before = inner.variables.copy()
    narrow(inner, test, truth)
    for name, argument in zip(names, node.args, strict=False):
        place = _place_of(argument)
        if place is not None and inner.variables[name] is not before[name]:
            frame.note(place, inner.variables[name])
