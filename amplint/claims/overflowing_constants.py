"""Constants that the low precision of a tensor cannot hold."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from amplint.claims.low_precision import by_node, follows_scenario, low_lanes, surest
from amplint.claims.operands import short_name
from amplint.infer.lattice.dtypes import BITS, bits_of
from amplint.infer.lattice.values import Const, Limit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Operand, Use
    from amplint.judge.certainty import Standing

_LARGEST = {
    BITS["float16"]: 65504.0,
    BITS["bfloat16"]: 3.3895313892515355e38,
    BITS["float32"]: 3.4028234663852886e38,
    BITS["float64"]: 1.7976931348623157e308,
}
"""The largest finite number of a dtype, by its bit: ``torch.finfo(dtype).max``."""
_RAISES = {
    "masked_fill": ("value",),
    "fill": ("value",),
    "full": ("fill_value",),
    "full_like": ("fill_value",),
    "new_full": ("fill_value",),
    "fill_diagonal": ("fill_value",),
    "index_fill": ("value",),
    "scatter": ("src", "value"),
    "pad": ("value",),
    "threshold": ("value",),
}
_RAISES_ON_CPU = {
    "clamp": ("min", "max"),
    "clip": ("min", "max"),
    "clamp_min": ("min",),
    "clamp_max": ("max",),
    "hardtanh": ("min_val", "max_val"),
}
_GIVES_INFINITY = {
    "where": ("self", "input", "other"),
    "__setitem__": ("value",),
    "tensor": ("data",),
    "as_tensor": ("data",),
    "asarray": ("data",),
    "new_tensor": ("data",),
}
"""The parameters of operations that take a constant: those that refuse one out of range, and those that round it.

Bounds are refused by the CPU's kernels alone: CUDA's read them in float32 (``opmath_type`` in
aten/src/ATen/native/cuda/TensorCompare.cu, which ``hardtanh`` calls too), where one beyond the dtype bounds nothing.
"""


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
    def settled(self) -> bool:
        """Whether the constant is what it is, whatever callers pass: then it is not infinite."""
        constant = self.constant
        if isinstance(self.use.arguments.get(self.parameter), Const):
            return not isinstance(constant, ast.Attribute)
        of_dtype = isinstance(constant, ast.Attribute) and isinstance(constant.value, ast.Call)
        nodes = ast.walk(constant) if constant is not None else ()
        return of_dtype or not any(isinstance(node, (ast.Name, ast.Call)) for node in nodes)


def _overflow(facts: FileFacts, use: Use) -> Overflow | None:
    short = short_name(use.op).rstrip("_") or use.op
    short = "__setitem__" if use.op.endswith("__setitem__") else short
    refused = _RAISES | _RAISES_ON_CPU if facts.device == "cpu" else _RAISES
    for table, raises in ((refused, True), (_GIVES_INFINITY, False)):
        for parameter in table.get(short, ()):
            number = use.numbers.get(parameter)
            if number is None:
                continue
            operand = use.operands[0]
            lanes = surest(low_lanes(facts, use, operand, partial(_exceeds, number)))
            if lanes and (raises or follows_scenario(facts, use) or any(each.proven for each in lanes.values())):
                return Overflow(use, parameter, operand, lanes, raises)
    return None


def _exceeds(number: float | Limit, lane: int, bit: int) -> bool:
    """Whether a low-precision dtype cannot hold a number in one scenario."""
    largest = _LARGEST.get(bit)
    if largest is None or bit not in (BITS["float16"], BITS["bfloat16"]):
        return False
    if not isinstance(number, Limit):
        return abs(number) > largest
    of = number.dtypes[lane]
    sizes = [_LARGEST.get(each, 0.0) for each in bits_of(of.mask)]
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
