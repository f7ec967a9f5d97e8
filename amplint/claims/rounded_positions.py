"""Products with positions that low precision cannot count."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.low_precision import assumed, by_node, claimed_lanes, doubted_beside_modules, surest
from amplint.claims.operands import short_name
from amplint.claims.result_uses import computed_from
from amplint.claims.surroundings import Surroundings
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import LOW
from amplint.infer.lattice.values import Trait
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Use
    from amplint.infer.state.operand import Operand
    from amplint.judge.certainty import Standing

_PRODUCTS = frozenset(("einsum", "outer", "ger", "matmul", "mm", "bmm", "mul", "multiply"))
_RATES = (Trait.EXPONENTIAL, Trait.DECAY)
_TURNS = re.compile(r"(sin|cos|polar|sinc|exp)_?$")
_EXPONENTIAL = re.compile(r"exp2?_?$")


@dataclass(frozen=True, slots=True)
class Rounded:
    """A product with positions, and in which scenarios these are low precision.

    ``exponents``: what counts up are frequencies, and the product is what they are the exponentials of. ``either``: it
    may be the other operand that holds positions, and what counts up their harmonics, which are few.
    """

    use: Use
    operand: Operand
    lanes: dict[int, Standing]
    exponents: bool = False
    either: bool = False


def _rounded(facts: FileFacts, use: Use) -> Rounded | None:
    if short_name(use.op).rstrip("_") not in _PRODUCTS or len(use.operands) < 2:
        return None
    counting = [operand for operand in use.operands if operand.value.trait is Trait.COUNT]
    if len(counting) != 1:
        return None
    lanes = claimed_lanes(facts, use, counting[0], lambda _, bit: bool(bit & LOW))
    for number, standing in lanes.items():
        if standing.proven and _follows_module(facts, counting[0], number):
            lanes[number] = standing.doubted(doubts.BUFFER_KEPT_WIDE)
    lanes = doubted_beside_modules(facts, use, lanes)
    return Rounded(use, counting[0], surest(lanes)) if lanes else None


def _are_angles(use: Use, around: Surroundings) -> bool:
    """Whether the product is of positions, not of weights that happen to count up: it needs their exact number.

    It is an outer product, or the other operand is computed as frequencies and slopes are, or sines or cosines are
    taken of it. What probabilities weigh is an average.
    """
    if any(operand.value.trait is Trait.SHARE for operand in _others(use)):
        return False
    return _meets_rates(use) or _turned(use.node, around)


def _others(use: Use) -> list[Operand]:
    return [operand for operand in use.operands if operand.value.trait is not Trait.COUNT]


def _meets_rates(use: Use) -> bool:
    """Whether what counts up is multiplied with each of what is computed as frequencies are, or with each of others."""
    name = short_name(use.op).rstrip("_")
    if name in ("outer", "ger") or any(operand.value.trait in _RATES for operand in _others(use)):
        return True
    return name == "einsum" and any(map(_is_outer, use.nodes.values()))


def _told_apart(rounded: Rounded, around: Surroundings) -> Rounded:
    """Whether it is frequencies that count up, not positions: the exponential is taken of the count times a number; or
    may be, beside a tensor of anything.

    Few are counted, exactly, and the product is rounded; how much that is to the angles, the positions decide.
    """
    use = rounded.use
    call = around.parent(use.node)
    if isinstance(call, ast.Attribute):
        call = around.parent(call)
    if any(other.value.dim != 0 for other in _others(use)):
        return replace(rounded, either=not _meets_rates(use))
    if not isinstance(call, ast.Call) or not _EXPONENTIAL.match(around.called(call)):
        return rounded
    return replace(rounded, lanes=assumed(rounded.lanes), exponents=True)


def _is_outer(node: ast.expr) -> bool:
    """An equation that sums over nothing and multiplies every item with every other."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or "->" not in node.value:
        return False
    given, _, result = node.value.replace(" ", "").partition("->")
    letters = given.replace(",", "").replace(".", "")
    return len(set(letters)) == len(letters) and set(letters) == set(result.replace(".", ""))


def _turned(node: ast.expr | ast.stmt, around: Surroundings) -> bool:
    """Whether a sine or cosine is taken, in the same function, of an expression or of what is computed from it."""
    function = around.function(node)
    if function is None:
        return False
    holds = computed_from(function, node)
    calls = nodes_of_kind(function, ast.Call)
    return any(_TURNS.match(around.called(call)) and holds(call) for call in calls)


def _follows_module(facts: FileFacts, operand: Operand, lane: int) -> bool:
    """Whether positions are low precision only because a buffer is, which may have been kept from conversion.

    One made in float32 explicitly is that where explicit dtypes are kept.
    """
    kept = (n for n, scenario in enumerate(facts.scenarios) if scenario.keeps_explicit)
    converted = not operand.value.explicit or any(not operand.value.dtypes[n].mask & LOW for n in kept)
    return facts.scenarios[lane].autocast is None and converted


def rounded_positions(facts: FileFacts) -> Iterator[tuple[list[Rounded], bool]]:
    """The products with what counts up at each place, and whether one is of positions, as far as the file shows."""
    around: Surroundings | None = None
    for uses in by_node(facts.uses):
        found = [rounded for use in uses if (rounded := _rounded(facts, use)) is not None]
        if found:
            around = around or Surroundings.of(facts.source.tree)
            angles = any(_are_angles(rounded.use, around) for rounded in found)
            yield [_told_apart(rounded, around) for rounded in found], angles
