"""What operators give, of tensors, numbers, text and sequences."""

from __future__ import annotations

import ast
from contextlib import suppress
from operator import add, mul, sub, truediv
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.dtypes import Bound, bounded_by
from amplint.infer.lattice.joining import concatenated, element_of, is_none, number_kind, options_of, unite
from amplint.infer.lattice.traits import negated
from amplint.infer.lattice.values import UNKNOWN, Const, Limit, Number, Sequence, Tensor, Union, Value, extreme
from amplint.infer.names.texts import form_of, interpolation, joined
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.operations import apply_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.infer.state.frame import Frame

_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift",
    ast.RShift: "bitwise_right_shift",
}


def binary_operator(
    frame: Frame, node: ast.expr | ast.stmt, op: ast.operator, left: Value, right: Value, a: ast.expr, b: ast.expr
) -> Value:
    """``left op right`` for tensors and numbers; unknown with None, of which Python makes a TypeError."""
    if isinstance(left, Union) or isinstance(right, Union):
        results = [
            binary_operator(frame, node, op, x, y, a, b)
            for x in options_of(left)
            for y in options_of(right)
            if not is_none(x) and not is_none(y)
        ]
        return unite(*results) if results else UNKNOWN
    if is_none(left) or is_none(right):
        return UNKNOWN
    if isinstance(op, ast.FloorDiv) and isinstance(left, Tensor) and left.maybe and isinstance(right, (Const, Number)):
        # What a caller passes and the code divides like this is a size, or else an integer tensor.
        return Number("int")
    if form_of(left) is not None and isinstance(op, (ast.Add, ast.Mod)):
        return joined(left, right) if isinstance(op, ast.Add) else interpolation(left)
    name = _BINARY[type(op)]
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        result = apply_named(frame, f"torch.{name}", Arguments([left, right], {}, {0: a, 1: b}), node)
        bound = min(map(_bound, (left, right)))
        return replace(result, dtypes=bounded_by(result.dtypes, bound)) if isinstance(result, Tensor) else result
    if isinstance(left, (Const, Number)) and isinstance(right, (Const, Number)):
        a_whole, b_whole = (v.value if isinstance(v, Const) else None for v in (left, right))
        if isinstance(op, ast.Mod) and isinstance(a_whole, int) and isinstance(b_whole, int) and b_whole:
            return Const(a_whole % b_whole)
        kinds = number_kind(left), number_kind(right)
        if None not in kinds:
            kind = "float" if isinstance(op, ast.Div) or "float" in kinds else "int"
            return Number(kind, extreme=_computed(op, left, right))
    if isinstance(op, ast.Add) and isinstance(left, Sequence) and isinstance(right, Sequence):
        return concatenated(frame.session, left, right)
    if isinstance(op, ast.Mult) and isinstance(left, Sequence):
        times = right.value if isinstance(right, Const) else None
        if left.items is not None and type(times) is int and 0 <= times * len(left.items) <= MAX_REPEATED:
            return Sequence(left.items * times, mutable=left.mutable, made=left.made)
        return Sequence(None, element_of(frame.session, left), left.mutable)
    return UNKNOWN


def _bound(operand: Value) -> Bound:
    """How surely an operand leaves it to a tensor beside it what comes out of both."""
    if isinstance(operand, (Tensor, Const, Number)):
        return Bound.SURE
    return Bound.ASSUMED if operand is UNKNOWN else Bound.NONE


MAX_REPEATED = 16
"""Items of a repeated sequence that are told apart."""

_EXACT: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: truediv,
    ast.Pow: pow,
}


def _computed(op: ast.operator, left: Value, right: Value) -> float | None:
    """The result of arithmetic on literals, where it is extreme: ``-(10**9)``, ``-(2**32) + 1``."""
    compute, a, b = _EXACT.get(type(op)), _literal(left), _literal(right)
    if compute is None or a is None or b is None:
        return None
    with suppress(ArithmeticError):
        return extreme(compute(a, b))
    return None


def _literal(value: Value) -> float | None:
    """A literal, or what arithmetic made of some where that is extreme; None for a number that callers choose."""
    if isinstance(value, Number):
        return value.extreme if isinstance(value.extreme, float) and value.usual is None else None
    if isinstance(value, Const) and isinstance(value.value, (int, float)):
        with suppress(ArithmeticError):
            return float(value.value)
    return None


def in_place_operator(frame: Frame, node: ast.AugAssign, left: Value, right: Value) -> Value:
    """``left op= right``: a tensor keeps its dtype, everything else is the plain operator.

    What a tensor is added to, or the like, is hardly a number.
    """
    if isinstance(left, Union):
        return unite(*(in_place_operator(frame, node, option, right) for option in left.options))
    plain = isinstance(node.op, ast.MatMult)
    if left is UNKNOWN and isinstance(right, Tensor) and not plain:
        return UNKNOWN
    if not isinstance(left, Tensor) or plain:
        return binary_operator(frame, node, node.op, left, right, node.target, node.value)
    name = "torch.Tensor." + _BINARY[type(node.op)] + "_"
    arguments = Arguments([left, right], {}, {0: node.target, 1: node.value})
    result = apply_named(frame, name, arguments, node)
    kept = result if result is not UNKNOWN else left
    if not left.maybe or left.dim == 1 or isinstance(right, Tensor):
        return kept
    number = binary_operator(frame, node, node.op, left, right, node.target, node.value)
    return unite(kept, number)


def unary_operator(op: ast.unaryop, value: Value) -> Value:
    """``op value`` for numbers and tensors."""
    if isinstance(value, Const) and isinstance(value.value, (int, float)) and isinstance(op, ast.USub):
        return Const(-value.value)
    if isinstance(value, Number):
        return _negative(value) if isinstance(op, ast.USub) and value.extreme is not None else value
    if isinstance(value, Tensor):
        return replace(value, trait=negated(value.trait)) if value.trait and isinstance(op, ast.USub) else value
    return UNKNOWN


def _negative(value: Number) -> Number:
    number = value.extreme
    if isinstance(number, Limit):
        return Number(value.kind, extreme=replace(number, negated=not number.negated))
    return Number(value.kind, extreme=None if number is None else -number)
