"""Constants that the low precision of a tensor cannot hold."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from amplint.claims.low_precision import by_node, follows_scenario, low_lanes, surest
from amplint.claims.operands import short_name
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import LOW, bits_of
from amplint.infer.lattice.values import Const, Limit, Tensor, Trait
from amplint.infer.torch_model.ranges import LARGEST, refusing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Use
    from amplint.infer.state.operand import Operand
    from amplint.judge.certainty import Standing

_GIVES_INFINITY = {
    "where": ("self", "input", "other"),
    "__setitem__": ("value",),
    "tensor": ("data",),
    "as_tensor": ("data",),
    "asarray": ("data",),
    "new_tensor": ("data",),
}
"""The parameters of operations that round a constant out of range."""
_PRODUCTS = ("mul", "multiply")


@dataclass(frozen=True, slots=True)
class Overflow:
    """A constant that does not fit: the use, the parameter it is passed by, and what is filled."""

    use: Use
    parameter: str
    operand: Operand
    lanes: dict[int, Standing]
    raises: bool

    @property
    def constant(self) -> ast.expr | None:
        """The expression of the constant."""
        return self.use.nodes.get(self.parameter)

    @property
    def negative(self) -> bool:
        """Whether it is beyond the lower end of the dtype."""
        number = self.use.numbers[self.parameter]
        return number.negated != (number.name == "min") if isinstance(number, Limit) else number < 0

    @property
    def in_tensor(self) -> bool:
        """Whether a 0-dim tensor brings the constant."""
        return isinstance(self.use.arguments.get(self.parameter), Tensor)

    @property
    def settled(self) -> bool:
        """Whether the constant is what it is, whatever callers pass: then it is not infinite."""
        constant = self.constant
        if isinstance(self.use.arguments.get(self.parameter), Const):
            return not isinstance(constant, ast.Attribute)
        of_dtype = isinstance(constant, ast.Attribute) and isinstance(constant.value, ast.Call)
        nodes = ast.walk(constant) if constant is not None else ()
        return of_dtype or not any(isinstance(node, (ast.Name, ast.Call)) for node in nodes)


def _rounding(use: Use) -> tuple[str, ...]:
    """The parameters whose constant an operation makes infinite: a factor is the product itself where all else is 1."""
    short = short_name(use.op)
    if short in _PRODUCTS:
        return ("self", "input", "other") if use.operands[0].value.trait is Trait.ONES else ()
    return _GIVES_INFINITY.get(short, ())


def _overflow(facts: FileFacts, use: Use) -> Overflow | None:
    for parameters, raises in ((refusing(use.op, facts.device), True), (_rounding(use), False)):
        for parameter in parameters:
            number = use.numbers.get(parameter)
            if number is None:
                continue
            operand = next((each for each in use.operands if each.value.number is None), use.operands[0])
            lanes = surest(low_lanes(facts, use, operand, partial(_exceeds, number)))
            if lanes and (raises or follows_scenario(facts, use) or any(each.proven for each in lanes.values())):
                return Overflow(use, parameter, operand, lanes, raises)
    return None


def _exceeds(number: float | Limit, lane: int, bit: int) -> bool:
    """Whether a low-precision dtype cannot hold a number in one scenario."""
    if not bit & LOW:
        return False
    largest = LARGEST[bit]
    if not isinstance(number, Limit):
        return abs(number) > largest
    of = number.dtypes[lane]
    sizes = [LARGEST.get(each, 0.0) for each in bits_of(of.mask)]
    return number.name in ("min", "max") and of.known and all(size > largest for size in sizes)


def _weight(overflow: Overflow) -> tuple[bool, bool, bool, int]:
    standings = overflow.lanes.values()
    told, proven = any(each.told for each in standings), any(each.proven for each in standings)
    return told, overflow.raises, proven, len(overflow.lanes)


def overflows(facts: FileFacts) -> Iterator[tuple[Overflow, list[int]]]:
    """For each place the constant that weighs most, and the scenarios in which one as sure does not fit."""
    for uses in by_node(facts.uses):
        found = [overflow for use in uses if (overflow := _overflow(facts, use)) is not None]
        if found:
            worst = max(found, key=_weight)
            rank = next(iter(worst.lanes.values())).rank
            alike = [o for o in found if any(each.rank == rank for each in o.lanes.values())]
            yield worst, sorted({number for overflow in alike for number in overflow.lanes})
