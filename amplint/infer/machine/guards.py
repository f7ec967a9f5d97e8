"""Tests that tell scenarios apart: autocast queries, dtype comparisons, None checks.

A test sends some scenarios one way, some the other, and some both ways.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import (
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
    Value,
)
from amplint.infer.machine.answers import answered
from amplint.infer.machine.comparing import COMPARISONS, compare_dtypes, compare_versions, device_test
from amplint.infer.machine.objects import stays
from amplint.infer.names.definitions import Bound, Class, Function, Instance
from amplint.infer.names.texts import text_of, usual_answer
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.meeting import binds

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame


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
        return answered(frame, test, yes & live, no & live)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return answered(frame, test, *_compare(frame, test.left, test.ops[0], test.comparators[0]))
    return answered(frame, test, *truth(frame, evaluate(frame, test), test))


def settled(frame: Frame, node: ast.expr) -> bool:
    """Whether a constant that an expression gives decides branches.

    An attribute may be set from outside, and what the file that is analysed then does counts too, unless it is known
    to be settled; in other files one that no method sets is what the constructor made it.
    """
    if not isinstance(node, ast.Attribute):
        return True
    known = not frame.namespace.own or node.attr in frame.session.settled.attributes
    return known and stays(frame, node)


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
        yes, no = none_test(a, live)
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
    flag = compare_versions(frame, a, op, b)
    if flag is not None:
        return flag.on & live, flag.off & live
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


def none_test(value: Value, live: int) -> tuple[int, int]:
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
