"""What a call does to dtypes without autocast, found by running it in many combinations of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch

from amplint.data._calls import Assignment, Call, Failure, Operand, Outcome, tensors_in
from amplint.data._dimensions import always_has_dimensions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FULL = torch.float32
#: (wide, narrow) in order of preference; the last serves operations with no low-precision CPU kernel.
PAIRS = ((FULL, torch.bfloat16), (FULL, torch.float16), (torch.float64, FULL))
#: Up to this many operands, every split into wide and narrow ones is run; beyond it, splits of one or two.
EXHAUSTIVE = 4

Split = frozenset[Operand]


class Observation(NamedTuple):
    """One successful run."""

    dtypes: Assignment
    outcome: Outcome


@dataclass(eq=False)
class Facts:
    """What one call does without autocast.

    ``size``: how many dimensions the result has: "none" though an operand has some, "less" than an operand, or "same".
    ``dimensioned``: it has some even where no operand has, or torch refuses these.
    ``fields``: names of the parts of the result.  ``numbers``: parameters whose Python numbers decide the dtype.
    """

    call: Call
    operands: dict[Operand, int]
    pair: tuple[torch.dtype, torch.dtype]
    floating: bool
    observations: list[Observation] = field(default_factory=list)
    strict: set[tuple[Operand, Operand]] = field(default_factory=set)
    one_way: set[tuple[Operand, Operand]] = field(default_factory=set)
    size: str = "same"
    dimensioned: bool = False
    fields: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def low(self) -> torch.dtype:
        """The low precision in which the call is measured."""
        return self.pair[1] if self.pair[0] is FULL else torch.bfloat16


def _uniform(operands: Iterable[Operand], dtype: torch.dtype) -> dict[Operand, torch.dtype]:
    return dict.fromkeys(operands, dtype)


def splits(operands: Sequence[Operand]) -> list[Split]:
    """Sets of operands to make narrow while the others stay wide."""
    count = len(operands)
    sizes = range(1, count) if count <= EXHAUSTIVE else sorted({1, 2, count - 1})
    return [frozenset(chosen) for size in sizes for chosen in itertools.combinations(operands, size)]


def _disagreements(operands: Sequence[Operand], failed: dict[Split, bool]) -> Iterator[tuple[Operand, Operand]]:
    """(wide, narrow) pairs for which every split that separates them so raises."""
    for wide, narrow in itertools.permutations(operands, 2):
        separating = [bad for split, bad in failed.items() if narrow in split and wide not in split]
        if separating and all(separating):
            yield wide, narrow


def measure(call: Call) -> Facts | None:
    """Run without autocast; None where no pair of dtypes works."""
    operands = call.operands("floating")
    facts = _measure_floating(call, operands) if operands else _measure_others(call)
    if facts is not None:
        _describe_result(facts)
    return facts


def _measure_floating(call: Call, operands: dict[Operand, int]) -> Facts | None:
    names = list(operands)
    for wide, narrow in PAIRS:
        outcomes = [(dtypes, call.run(dtypes)) for dtypes in (_uniform(names, wide), _uniform(names, narrow))]
        if not any(isinstance(outcome, Failure) for _, outcome in outcomes):
            break
    else:
        return None
    facts = Facts(call, operands, (wide, narrow), True, [Observation(*pair) for pair in outcomes])
    failed: dict[Split, bool] = {}
    for split in splits(names):
        dtypes = {name: narrow if name in split else wide for name in names}
        outcome = call.run(dtypes)
        failed[split] = isinstance(outcome, Failure)
        if not failed[split]:
            facts.observations.append(Observation(dtypes, outcome))
    directed = set(_disagreements(names, failed))
    facts.strict = {(a, b) for a, b in directed if (b, a) in directed}
    facts.one_way = directed - facts.strict
    for dtype in (torch.float16, torch.float64, torch.int64, torch.int32, torch.bool, torch.complex64):
        _observe(facts, _uniform(names, dtype))
    for one in names if len(names) > 1 else ():
        _observe(facts, {**_uniform(names, narrow), one: torch.int64})
        _observe(facts, {**_uniform(names, torch.int64), one: narrow})
    return facts


def _observe(facts: Facts, dtypes: Assignment) -> None:
    outcome = facts.call.run(dtypes)
    if not isinstance(outcome, Failure):
        facts.observations.append(Observation(dtypes, outcome))


def _measure_others(call: Call) -> Facts:
    """Calls with no floating operand: complex operands, else integer ones, in each dtype that works, and two mixed."""
    category = "complex" if call.operands("complex") else "integer"
    operands = call.operands(category)
    facts = Facts(call, operands, PAIRS[0], False, [])
    dtypes = (torch.complex64, torch.complex128) if category == "complex" else (torch.int64, torch.int32, torch.bool)
    for dtype in dtypes:
        _observe(facts, _uniform(operands, dtype))
    for operand in operands if len(operands) > 1 else ():
        _observe(facts, {**_uniform(operands, dtypes[0]), operand: dtypes[1]})
    if not facts.observations:
        facts.observations.append(Observation({}, call.run({})))
    if not operands:
        facts.numbers = tuple(_deciding_numbers(call))
    return facts


def _deciding_numbers(call: Call) -> Iterator[str]:
    """Parameters of a constructor whose integer, written as a float, changes the dtype that comes out."""
    plain = call.run({})
    for name, value in call.named():
        if type(value) is int:
            again = call.with_argument(name, float(value)).run({})
            if not isinstance(again, Failure) and again != plain:
                yield name


def _describe_result(facts: Facts) -> None:
    """Fill in the result's dimensions beside the operands', and the names of its parts."""
    _, out = facts.call.output({})
    parts = [*tensors_in(out)]
    dims = [tensor.dim() for _, value in facts.call.named() for tensor in tensors_in(value)]
    if parts and any(dims):
        shrunk = min(part.dim() for part in parts)
        if shrunk == 0:
            facts.size = "none"
        elif shrunk < max(dims) and len(dims) == 1:
            facts.size = "less"
    facts.dimensioned = always_has_dimensions(facts.call)
    if isinstance(out, tuple) and type(out) is not tuple:
        facts.fields = tuple(getattr(type(out), "__match_args__", ())) or tuple(getattr(out, "_fields", ()))
