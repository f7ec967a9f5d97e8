"""Operands that disagree: in which scenarios that is worth saying, and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.lattice.dtypes import FLOAT32
from amplint.infer.lattice.strength import Strength
from amplint.infer.state.facts import Kind
from amplint.infer.torch_model.provenance import beside_its_own, never_converted, was_added
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, Standing, holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.finding import Doubt
    from amplint.infer.lattice.dtypes import Autocast
    from amplint.infer.state.facts import FileFacts, Mismatch


class Judged(NamedTuple):
    """How a mismatch stands in the scenarios ``lanes``; ``definite``: in these it is on every path of which
    anything is known, for what callers are taken to pass; so it is then in ``others``, where it is less sure."""

    lanes: tuple[int, ...]
    standing: Standing
    definite: bool = False
    others: tuple[int, ...] = ()


def judge(facts: FileFacts, found: Mismatch, autocast: Autocast) -> Judged:
    """The scenarios in which a mismatch is surest, and how sure it is there."""
    if not found.strengths:
        return Judged(found.lanes, ASSUMED)
    strengths = dict(zip(found.lanes, found.strengths, strict=True))
    forced = [lane for lane in found.lanes if strengths[lane] is Strength.FORCED]
    sure = forced or [lane for lane in found.lanes if strengths[lane] is Strength.ASSUMED] or list(found.lanes)
    held = holding({doubts.UNKNOWN_ON_A_PATH: any(operand.value.unsure for operand in found.pair)})
    if not forced:
        held += _doubts(found, autocast, sure[0], strengths[sure[0]])
    added = any(was_added(operand, sure[0]) for operand in found.pair)
    if _only_by_default(facts, sure) and not added and not found.low_default:
        held.append(doubts.DEFAULT_UNSEEN)
    half = [lane for lane in sure if facts.scenarios[lane].parameters != "float32" and not facts.named]
    held += holding({doubts.NEVER_CONVERTED: any(never_converted(found.pair, lane) for lane in half)})
    definite = {doubts.UNKNOWN_ON_A_PATH} >= {*held} and all(strengths[lane] >= Strength.ASSUMED for lane in sure)
    others = (lane for lane in found.lanes if lane not in sure and strengths[lane] is Strength.ASSUMED)
    return Judged(tuple(sure), Standing(bool(forced) and not found.cited).doubted(*held), definite, tuple(others))


def _only_by_default(facts: FileFacts, lanes: list[int]) -> bool:
    """Whether operands differ only where modules are built under a default dtype, and keep what is made explicitly.

    Never where such a scenario was named.
    """
    return not facts.named and all(facts.scenarios[lane].keeps_explicit for lane in lanes)


def _doubts(found: Mismatch, autocast: Autocast, lane: int, strength: Strength) -> Iterator[Doubt]:
    """Why dtypes that differ for some callers, or on some path, may not be worth saying.

    Where the code changes the dtype itself on the way (attention after a norm, a region left, a gradient), or a
    constant comes in, one path is enough; and where the one operand has the same dtype on every path.
    """
    kind, pair = found.kind, found.pair
    if kind is Kind.INDEX_WRITE and strength is Strength.CALLER and _written_wide(found, autocast, lane):
        yield doubts.WIDE_DESTINATION
    fixed = any(known.exact and not known.assumed for known in (operand.value.dtypes[lane] for operand in pair))
    if strength is not Strength.PATH or fixed:
        return
    if kind is Kind.UPCAST or (kind is Kind.MIXED and not beside_its_own(pair, lane)):
        yield doubts.PATHS_APART


def _written_wide(found: Mismatch, autocast: Autocast, lane: int) -> bool:
    """Whether autocast made rows float32 that go where a caller may have passed low precision.

    What a layer gets under autocast is mostly a residual stream, which stays float32, or what a norm gave.
    """
    destination, source = (operand.value.dtypes[lane] for operand in found.pair)
    return bool(autocast[lane].low) and destination.assumed and source.mask == FLOAT32
