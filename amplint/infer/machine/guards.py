"""Tests that tell scenarios apart: autocast queries, dtype comparisons, None checks.

A test sends some scenarios one way, some the other, and some both ways; inside a branch the dtype of what was compared
is narrowed.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.dtypes import INTEGERS, Lane, equal_lanes
from amplint.infer.lattice.joining import options_of, unite
from amplint.infer.lattice.kinds import KINDS
from amplint.infer.lattice.values import (
    UNKNOWN,
    Const,
    Device,
    DTypeValue,
    Layer,
    Mapping,
    Number,
    Partial,
    Sequence,
    Tensor,
    Text,
    TorchName,
    Union,
    Value,
)
from amplint.infer.machine.answers import answer, answered, held_test
from amplint.infer.machine.builtins import BUILTIN_NAMES, is_instance
from amplint.infer.machine.choices import choose
from amplint.infer.machine.entries import instance_of
from amplint.infer.machine.objects import stays
from amplint.infer.machine.running import bind
from amplint.infer.names.classes import is_module
from amplint.infer.names.definitions import Bound, Class, Function, Instance
from amplint.infer.names.texts import text_of, usual_answer
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.infer.state.meeting import binds
from amplint.infer.syntax.bodies import only_answer
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.handed_modules import handed, is_layer_class

if TYPE_CHECKING:
    from collections.abc import Callable


def split(frame: Frame, test: ast.expr) -> tuple[int, int]:
    """The scenarios in which a test can be true, and in which it can be false; both are subsets of the live ones.

    Evaluates the test once.
    """
    live = frame.live
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yes, no = split(frame, test.operand)
        return no, yes
    if isinstance(test, ast.BoolOp):
        yes, no = (live, 0) if isinstance(test.op, ast.And) else (0, live)
        for operand in test.values:
            first, reached = operand is test.values[0], frame.live
            before = frame.variables.copy() if not first and binds(operand) else None
            part_yes, part_no = split(frame, operand)
            part_yes, part_no = part_yes & frame.live, part_no & frame.live
            if not first:
                frame.live = reached
            if before is not None:
                frame.perhaps(before)
            if isinstance(test.op, ast.And):
                yes, no = yes & part_yes, no | part_no
            else:
                yes, no = yes | part_yes, no & part_no
        return yes & live, no & live
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return answered(frame, test, *_compare(frame, test.left, test.ops[0], test.comparators[0]))
    return answered(frame, test, *truth(frame, evaluate(frame, test), test))


def settled(frame: Frame, node: ast.expr) -> bool:
    """Whether a constant that an expression gives decides branches.

    An attribute may be set from outside, and what the file that is analysed then does counts too; in other files one
    that no method sets is what the constructor made it.
    """
    if not isinstance(node, ast.Attribute):
        return True
    return not frame.namespace.own and stays(frame, node)


def truth(frame: Frame, value: Value, test: ast.expr) -> tuple[int, int]:
    """Where the value of a test can be true, and can be false."""
    live = frame.live
    if isinstance(value, AutocastFlag):
        return value.on & live, value.off & live
    if isinstance(value, DTypeValue):
        return live, 0
    if isinstance(value, Const) and settled(frame, test):
        return (live, 0) if value.value else (0, live)
    if isinstance(value, (Function, Class, Bound, TorchName, Decorated, Partial)):
        return live, 0
    return live & ~_switched_off(frame, test), live


def _switched_off(frame: Frame, test: ast.expr) -> int:
    """The scenarios of converted weights, where a test asks for what switches an autocast region of the same code."""
    if not isinstance(test, (ast.Name, ast.Attribute)):
        return 0
    switches = frame.namespace.autocast_switches.get(id(frame.definition))
    if not switches or ast.unparse(test) not in switches:
        return 0
    scenarios = enumerate(frame.session.scenarios)
    return sum(1 << number for number, each in scenarios if each.autocast is None and each.parameters != "float32")


def usually(frame: Frame, test: ast.expr) -> bool | None:
    """How a test comes out where callers choose what is usual and constants that constructors assign stay; else None.

    ``split`` leaves such a test open, since anybody may pass another string or assign the attribute.
    """
    if not frame.session.assumptions.usual:
        return None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        answer = usually(frame, test.operand)
        return None if answer is None else not answer
    if isinstance(test, ast.BoolOp):
        answers = [usually(frame, operand) for operand in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in answers:
            return decisive
        return None if None in answers else not decisive
    if isinstance(test, ast.Attribute):
        return _as_answer(evaluate(frame, test), constants=True)
    if isinstance(test, ast.Name):
        return _as_answer(evaluate(frame, test), constants=False)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
        return usual_answer(evaluate(frame, test.func.value), test.func.attr, [evaluate(frame, a) for a in test.args])
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _usual_comparison(frame, test.left, test.ops[0], test.comparators[0])
    return None


def _as_answer(value: Value, *, constants: bool) -> bool | None:
    if isinstance(value, (Text, Number)):
        return None if value.usual is None else bool(value.usual)
    return value.value if constants and isinstance(value, Const) and isinstance(value.value, bool) else None


COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
"""How Python compares two values that are known."""


def _usual_comparison(frame: Frame, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
    """A comparison with a string or a number that a caller may choose."""
    if type(op) not in COMPARISONS:
        return None
    a, b = evaluate(frame, left), evaluate(frame, right)
    several = isinstance(op, (ast.In, ast.NotIn))
    wanted = b.items if several and isinstance(b, Sequence) else (b,) if not several else None
    if wanted is None or not any(isinstance(v, (Text, Number)) for v in (a, *wanted)):
        return None
    values = [v.usual if isinstance(v, (Text, Number)) else getattr(v, "value", None) for v in (a, *wanted)]
    if None in values or not all(isinstance(v, (str, int, float)) for v in values):
        return None
    numbers = {isinstance(v, str) for v in values}
    if len(numbers) > 1 and not isinstance(op, (ast.Eq, ast.NotEq)):
        return None
    return COMPARISONS[type(op)](values[0], values[1:] if several else values[1])


def _compare(frame: Frame, left: ast.expr, op: ast.cmpop, right: ast.expr) -> tuple[int, int]:
    live = frame.live
    a, b = evaluate(frame, left), evaluate(frame, right)
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(b, Const) and b.value is None:
        yes, no = _none_test(a, live)
        return (yes, no) if isinstance(op, ast.Is) else (no, yes)
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(b, Mapping) and (text_of(a) is not None):
        held = text_of(a) in b.items
        if not b.loose if held else b.other is None or b.shared:
            return (live, 0) if held == isinstance(op, ast.In) else (0, live)
    if isinstance(a, Device):
        return device_test(frame, a, op, b)
    if isinstance(a, DTypeValue):
        flag = compare_dtypes(a, op, b)
        return (flag.on & live, flag.off & live) if flag is not None else (live, live)
    if isinstance(a, Const):
        outcome = _outcome(a, op, b)
        if outcome is not None and settled(frame, left) and settled(frame, right):
            return (live, 0) if outcome else (0, live)
    return live, live


def _outcome(value: Const, op: ast.cmpop, other: Value) -> bool | None:
    """How a constant compares with another, or whether it is among several; None where that is open."""
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(other, Sequence) and other.items is not None:
        known = [item.value for item in other.items if isinstance(item, Const)]
        told = value.value in known or len(known) == len(other.items)
        return (value.value in known) == isinstance(op, ast.In) if told else None
    if type(op) not in COMPARISONS or isinstance(op, (ast.In, ast.NotIn)) or not isinstance(other, Const):
        return None
    numbers = isinstance(value.value, (int, float)) and isinstance(other.value, (int, float))
    if not numbers and not isinstance(op, (ast.Eq, ast.NotEq)):
        return None
    return COMPARISONS[type(op)](value.value, other.value)


def compare_dtypes(left: DTypeValue, op: ast.cmpop, right: Value) -> AutocastFlag | None:
    """The answer of ``left == right`` and the like for dtypes; None where it cannot be told."""
    wanted = _dtype_options(right)
    if wanted is None or not isinstance(op, (ast.Eq, ast.Is, ast.In, ast.NotEq, ast.IsNot, ast.NotIn)):
        return None
    yes = no = 0
    for number, lane in enumerate(left.dtypes):
        can, cannot = _dtype_test(lane, [w[number] for w in wanted])
        yes |= 1 << number if can else 0
        no |= 1 << number if cannot else 0
    return AutocastFlag(yes, no) if isinstance(op, (ast.Eq, ast.Is, ast.In)) else AutocastFlag(no, yes)


def device_test(frame: Frame, device: Device, op: ast.cmpop, wanted: Value) -> tuple[int, int]:
    """A device's type against names; a tensor's own device is the one whose policy is judged."""
    options = wanted.items if isinstance(wanted, Sequence) and wanted.items is not None else (wanted,)
    names = [option.value for option in options if isinstance(option, Const)]
    if not names or len(names) != len(options) or not isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return frame.live, frame.live
    found = (device.type or frame.session.device) in names
    return (frame.live, 0) if found == isinstance(op, (ast.Eq, ast.In)) else (0, frame.live)


def _none_test(value: Value, live: int) -> tuple[int, int]:
    """Where ``value is None`` can be true and false."""
    options = options_of(value)
    yes = no = 0
    for option in options:
        if type(option) is Const:
            if option.value is None:
                yes = live
            else:
                no = live
        elif (isinstance(option, Tensor) and not option.maybe) or isinstance(
            option, (Layer, Instance, Function, Class, Partial, TorchName, Text)
        ):
            no = live
        else:
            return live, live
    return yes, no


def _dtype_options(value: Value) -> list[tuple[Lane, ...]] | None:
    if isinstance(value, DTypeValue):
        return [value.dtypes]
    if isinstance(value, Sequence) and value.items:
        options = [item.dtypes for item in value.items if isinstance(item, DTypeValue)]
        return options if len(options) == len(value.items) else None
    return None


def _dtype_test(lane: Lane, wanted: list[Lane]) -> tuple[bool, bool]:
    """Whether a dtype can be, and can fail to be, one of those wanted."""
    if any(lane.symbol is not None and lane.symbol is w.symbol for w in wanted):
        return True, False
    if not lane.known or not all(w.known for w in wanted):
        return True, True
    mask = 0
    for w in wanted:
        mask |= w.mask
    exact = all(w.exact for w in wanted)
    can = bool(lane.mask & mask)
    cannot = bool(lane.mask & ~mask) or not exact
    return can, cannot


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
    options = _dtype_options(evaluate(frame, right))
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
    kept = [o for o in options if (type(o) is Const and o.value is None) == is_none or _none_test(o, 1) == (1, 1)]
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


def is_torch(value: Value, *names: str) -> bool:
    """Whether a value is one of these torch names."""
    return isinstance(value, TorchName) and value.name in names
