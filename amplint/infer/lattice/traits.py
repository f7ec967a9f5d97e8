"""What operations make of the values of tensors, as far as range and precision depend on it."""

from __future__ import annotations

import ast

from amplint.infer.lattice.values import Const, Trait, Value

_ALWAYS: dict[str, Trait] = {
    **dict.fromkeys(("abs", "relu", "softplus", "norm", "vector_norm", "var", "std", "sqrt"), Trait.POSITIVE),
    **dict.fromkeys(("exp", "exp2"), Trait.EXPONENTIAL),
    **dict.fromkeys(("sigmoid", "softmax", "expit"), Trait.SHARE),
    **dict.fromkeys(("tanh", "sin", "cos", "sign", "hardsigmoid", "normalize"), Trait.BOUNDED),
    **dict.fromkeys(("cosine_similarity", "erf", "layer_norm", "rms_norm", "hardtanh"), Trait.BOUNDED),
    **dict.fromkeys(("max", "amax", "logsumexp"), Trait.LARGEST),
    **dict.fromkeys(("logsigmoid", "log_softmax"), Trait.NEGATIVE),
}
_COMPUTED = frozenset(
    ("square", "mul", "multiply", "pow", "sub", "subtract", "add", "div", "neg", "negative", "sum", "mean")
)
GIVING = _ALWAYS.keys() | _COMPUTED
"""Short names of operations whose results have traits."""

_SPREADS = (Trait.SQUARE, Trait.SPREAD)
_NOT_NEGATIVE = (*_SPREADS, Trait.POSITIVE)
_SIGNS = {**dict.fromkeys(_NOT_NEGATIVE, 1), Trait.NEGATIVE: -1, Trait.EXPONENTIAL: 1, Trait.DECAY: -1}
SMALL = (Trait.BOUNDED, Trait.SHARE, Trait.REST)
"""Traits of numbers that are small whatever the input."""
_EXPONENTIAL = (Trait.EXPONENTIAL, Trait.DECAY)


def trait_of(short: str, operands: list[tuple[Trait | None, ast.expr | None]], bound: dict[str, Value]) -> Trait | None:
    """What the values of an operation's result are like; of each operand its trait and its expression are given."""
    always = _ALWAYS.get(short)
    if always is not None or not operands:
        return always
    operands = [(Trait.EQUAL if trait is Trait.ONES else trait, node) for trait, node in operands]
    first, node = operands[0]
    if short in ("neg", "negative"):
        return negated(first)
    if short in ("sum", "mean"):
        return Trait.SPREAD if first in _SPREADS else None
    if short in ("pow", "square"):
        base = bound.get("self", bound.get("input"))
        if isinstance(base, Const) and isinstance(base.value, int | float) and base.value > 0:
            return Trait.EXPONENTIAL
        exponent = bound.get("exponent", Const(2))
        even = isinstance(exponent, Const) and exponent.value in (2, 4)
        return _squared(first) if even else None
    if len(operands) == 1 and first in SMALL:
        left = first is Trait.SHARE and short in ("sub", "subtract", "rsub")
        return Trait.REST if left else Trait.BOUNDED
    if len(operands) == 1:
        return first if first not in _SPREADS else Trait.POSITIVE
    second, other = operands[1]
    if short in ("sub", "subtract") and second is Trait.LARGEST:
        return Trait.NEGATIVE
    if short in ("mul", "multiply") and _same(node, other):
        return _squared(first)
    if short in ("mul", "multiply", "div") and first in _SIGNS and second in _SIGNS:
        positive = _SIGNS[first] == _SIGNS[second]
        if first in _EXPONENTIAL or (second in _EXPONENTIAL and short != "div"):
            return Trait.EXPONENTIAL if positive else Trait.DECAY
        return Trait.POSITIVE if positive else Trait.NEGATIVE
    if first in SMALL and second in SMALL and short in ("add", "mul", "multiply"):
        return Trait.BOUNDED
    return first if first is second is not Trait.COUNT and short in ("add", "mul", "multiply") else None


def _squared(trait: Trait | None) -> Trait:
    if trait is Trait.BUCKET:
        return Trait.BUCKET_SQUARE
    return Trait.BOUNDED if trait in SMALL else Trait.SQUARE


def negated(trait: Trait | None) -> Trait | None:
    """What the negative of values is like."""
    if trait in _EXPONENTIAL:
        return Trait.DECAY if trait is Trait.EXPONENTIAL else Trait.EXPONENTIAL
    if trait in _NOT_NEGATIVE:
        return Trait.NEGATIVE
    if trait in SMALL:
        return Trait.BOUNDED
    return Trait.POSITIVE if trait is Trait.NEGATIVE else trait if trait is not Trait.LARGEST else None


def joined_trait(a: Trait | None, b: Trait | None) -> Trait | None:
    """What values are like that come by one of two paths: what is a hazard on one of them is one."""
    if a is b:
        return a
    if a in SMALL and b in SMALL:
        return Trait.BOUNDED
    return Trait.COUNT if Trait.COUNT in (a, b) else None


def _same(a: ast.expr | None, b: ast.expr | None) -> bool:
    if isinstance(a, ast.Name) and isinstance(b, ast.Name):
        return a.id == b.id
    return a is not None and type(a) is type(b) and ast.dump(a) == ast.dump(b)
