"""Casts to a 16-bit dtype by name, and tensors made in one, where the model may run in the other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.asked_for_dtype import OTHER, asks, mentioned, names_both, tests_of
from amplint.claims.cast_receivers import is_tensor
from amplint.claims.named_half import NamedHalf, named_halves
from amplint.claims.result_uses import uses_behind, viewed
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import BITS
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import CastCall, FileFacts
    from amplint.judge.certainty import Standing

_MASKS = {name: BITS[name] for name in OTHER}
_CARRIERS = (ast.Tuple, ast.List, ast.Dict, ast.IfExp, ast.BinOp, ast.UnaryOp)


@dataclass(frozen=True, slots=True)
class FixedHalf:
    """A named dtype that may be the wrong one, and in which scenarios it is.

    ``alike``: a test lets both 16-bit dtypes through.
    """

    half: NamedHalf
    lanes: list[int]
    standing: Standing
    alike: bool = False


def _claim(facts: FileFacts, around: Surroundings, half: NamedHalf, cast: CastCall | None) -> FixedHalf | None:
    """What is wrong with a named dtype; None where nothing is."""
    tests = list(tests_of(around, half.node))
    asked = any(
        asks(test, answer, half.dtype, around) or (answer and _is_of_float32(test, around)) for test, answer in tests
    )
    standing = ASSUMED.doubted(doubts.ASKED_FOR) if asked else ASSUMED
    lanes = _wrong_lanes(facts, half, cast)
    if any(names_both(test, answer, around) for test, answer in tests):
        return FixedHalf(half, lanes or _other_lanes(facts, half), standing, alike=True)
    if not lanes or not _is_of_tensor(around, half, cast):
        return None
    leaves = _is_of_model(facts, half, cast) and _is_returned(around, half.node)
    return FixedHalf(half, lanes, standing.doubted(*holding({doubts.NO_HARM_SEEN: not leaves})))


def _is_returned(around: Surroundings, node: ast.expr) -> bool:
    """Whether the function returns what an expression makes: in views, containers and sums of it, or in a variable."""
    outer = _carrier(around, node)
    statement, function = around.parent(outer), around.function(node)
    if not isinstance(statement, ast.Assign) or function is None:
        return isinstance(statement, ast.Return)
    names = {part.id for target in statement.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    read = (use for name in names for use in uses_behind(function, name, statement.value))
    return any(isinstance(around.parent(_carrier(around, use)), ast.Return) for use in read)


def _carrier(around: Surroundings, node: ast.expr) -> ast.expr:
    """The outermost expression that holds a tensor as it is, or what is computed from it without a call."""
    while True:
        node = viewed(around, node)
        parent = around.parent(node)
        if not isinstance(parent, _CARRIERS):
            return node
        node = parent


def _is_of_float32(test: ast.expr, around: Surroundings) -> bool:
    """``x.dtype == torch.float32``: what is in 16 bit keeps its own dtype, and for the rest one is as good."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    return around.is_dtype(test.left) and mentioned(test, around) == {"float32"}


def _is_of_model(facts: FileFacts, half: NamedHalf, cast: CastCall | None) -> bool:
    """Whether a module runs this, or a caller passes what is cast or something that it is computed from."""
    row = half.node.lineno
    if (cast is not None and cast.in_module) or facts.in_module(row) or facts.runs_on_weights(row):
        return True
    pending = [cast.tensor.origin] if cast is not None else []
    while pending:
        origin = pending.pop()
        if origin is not None and isinstance(origin.node, ast.arg):
            return True
        pending += origin.parents if origin is not None else ()
    return False


def _other_lanes(facts: FileFacts, half: NamedHalf) -> list[int]:
    """The scenarios whose 16-bit dtype is not the one that the code names."""
    other = OTHER[half.dtype]
    return [number for number, s in enumerate(facts.scenarios) if other in (s.parameters, s.autocast)]


def _wrong_lanes(facts: FileFacts, half: NamedHalf, cast: CastCall | None) -> list[int]:
    """Those in which the code runs with a tensor that does not have the named dtype already."""
    lanes = _other_lanes(facts, half)
    if cast is None:
        return lanes
    mask = _MASKS[half.dtype]
    if cast.discarded or any(lane.mask != mask for lane in cast.dtypes):
        return []
    return [n for n in lanes if cast.live >> n & 1 and cast.tensor.dtypes[n].mask != mask]


def _is_of_tensor(around: Surroundings, half: NamedHalf, cast: CastCall | None) -> bool:
    """Whether it is a tensor that gets the dtype, in code that a model runs."""
    function = around.function(half.node)
    if function is None:
        return False
    if half.receiver is None or (cast is not None and is_tensor(cast)):
        return True
    return function.name == "forward" and isinstance(half.receiver, ast.Name)


def fixed_halves(facts: FileFacts, around: Surroundings) -> Iterator[FixedHalf]:
    """The named dtypes of a file that may be the wrong ones; of several that stand alike in one block the first."""
    casts = {id(cast.node): cast for cast in facts.casts}
    spoken: set[tuple[int, str, int]] = set()
    for half in sorted(named_halves(facts, around), key=lambda half: facts.span(half.node)):
        cast = casts.get(id(half.node))
        found = _claim(facts, around, half, cast)
        if found is None:
            continue
        block = (around.block(half.node), half.dtype, found.standing.rank)
        if block not in spoken:
            spoken.add(block)
            yield found
