"""Operands that disagree: in which scenarios that is worth saying, and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.lattice.dtypes import FLOAT32
from amplint.infer.lattice.origins import deciding, lineage
from amplint.infer.lattice.strength import Strength
from amplint.infer.state.facts import Kind
from amplint.infer.torch_model.provenance import behind, beside_its_own, made_in, was_added
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, Standing, holding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.finding import Doubt
    from amplint.infer.lattice.dtypes import Autocast
    from amplint.infer.lattice.values import Origin
    from amplint.infer.state.facts import FileFacts, Mismatch, Operand


class Judged(NamedTuple):
    """How a mismatch stands in the scenarios ``lanes``; ``definite``: in these it is on every path, for what callers
    are taken to pass."""

    lanes: tuple[int, ...]
    standing: Standing
    definite: bool = False


def judge(facts: FileFacts, found: Mismatch, autocast: Autocast, blamed: Callable[[Origin], bool]) -> Judged:
    """The scenarios in which a mismatch is surest, and how sure it is there.

    ``blamed`` says whether another operation surely fails for what a constructor makes.
    """
    if not found.strengths:
        return Judged(found.lanes, ASSUMED)
    pair, strengths = found.pair, dict(zip(found.lanes, found.strengths, strict=True))
    added = [lane for lane in found.lanes if any(was_added(operand, lane) for operand in pair)]
    forced = [lane for lane in found.lanes if strengths[lane] is Strength.FORCED]
    by_model = [lane for lane in forced if any(_follows_default(facts, operand, lane) for operand in pair)]
    forced = [lane for lane in forced if lane not in by_model] or forced
    sure = forced or [lane for lane in found.lanes if strengths[lane] is Strength.ASSUMED] or list(found.lanes)
    asked = {
        doubts.OTHER_LIBRARY: found.cited,
        doubts.ADDED_LATER: sure[0] in added,
        doubts.FOLLOWS_DEFAULT: sure[0] in by_model,
        doubts.NORM_KEPT_WIDE: found.of_norm,
        doubts.UNKNOWN_ON_A_PATH: any(operand.value.unsure for operand in pair),
    }
    held = holding(asked)
    if not forced:
        held += _doubts(facts, found, autocast, sure[0], strengths[sure[0]], blamed)
    if _only_by_default(facts, sure) and not added and not found.low_default:
        held.append(doubts.DEFAULT_UNSEEN)
    definite = all(strengths[lane] >= Strength.ASSUMED for lane in sure)
    return Judged(tuple(sure), Standing(bool(forced)).doubted(*held), definite)


def _only_by_default(facts: FileFacts, lanes: list[int]) -> bool:
    """Whether operands differ only where modules are built under a default dtype, and keep what is made explicitly.

    Never where nothing else was asked for.
    """
    other = any(not scenario.keeps_explicit for scenario in facts.scenarios[1:])
    return other and all(facts.scenarios[lane].keeps_explicit for lane in lanes)


def _doubts(
    facts: FileFacts,
    found: Mismatch,
    autocast: Autocast,
    lane: int,
    strength: Strength,
    blamed: Callable[[Origin], bool],
) -> Iterator[Doubt]:
    """Why dtypes that differ for some callers, or on some path, may not be worth saying.

    Where the code changes the dtype itself on the way (attention after a norm, a region left, a gradient), one path is
    enough; but not a path that also decides whether the operand exists. One is enough too where a constant comes in on
    it and the other operand has one dtype whichever way was taken; but where other tensors only took their dtype from
    that constant, what it meets itself fails first.
    """
    kind, pair = found.kind, found.pair
    if kind is Kind.INDEX_WRITE and _rests_on_anyone(facts, pair, lane, strength):
        yield doubts.ROWS_OF_ANYONE
    if kind is Kind.INDEX_WRITE and strength is Strength.CALLER and _written_wide(found, autocast, lane):
        yield doubts.WIDE_DESTINATION
    if kind is Kind.AUTOCAST_EXIT and strength is Strength.CALLER and any(o.value.unsure for o in pair):
        yield doubts.MAY_BE_A_NUMBER
    if strength is not Strength.PATH:
        return
    if any(operand.value.optional for operand in pair):
        yield doubts.MAY_BE_MISSING
    if kind is Kind.INDEX_WRITE and _may_follow(pair, lane) and made_in(pair, lane) is None:
        yield doubts.ROWS_MAY_FOLLOW
    if kind in (Kind.CONSTANT, Kind.TABLE):
        made = made_in(pair, lane)
        others = [operand.value.dtypes[lane] for operand in pair if made is None or operand is not made.operand]
        brought = made is not None and deciding(made.operand.value.origin, lane) is not made.maker
        if made is not None and brought and blamed(made.maker):
            yield doubts.FAILS_ELSEWHERE
        if not all(other.exact for other in others):
            yield doubts.OTHER_VARIES
    if kind is Kind.UPCAST or (kind is Kind.MIXED and not beside_its_own(pair, lane)):
        yield doubts.PATHS_APART


def _rests_on_anyone(facts: FileFacts, pair: tuple[Operand, Operand], lane: int, strength: Strength) -> bool:
    """Whether an index write fails only for what a method of a class that is no module is assumed to be passed.

    Rows from such a caller are as often data (labels, boxes, scores) as activations. A destination from there that the
    function fills with rows of a dtype of its own making is another matter, unless autocast would have lowered it too.
    """
    destination, source = pair
    if strength is Strength.CALLER and _from_anyone(facts, destination, lane):
        return True
    return _from_anyone(facts, source, lane)


def _written_wide(found: Mismatch, autocast: Autocast, lane: int) -> bool:
    """Whether autocast made rows float32 that go where a caller may have passed low precision.

    What a layer gets under autocast is mostly a residual stream, which stays float32, or what a norm gave.
    """
    destination, source = (operand.value.dtypes[lane] for operand in found.pair)
    return bool(autocast[lane].low) and destination.assumed and source.mask == FLOAT32


def _may_follow(pair: tuple[Operand, Operand], lane: int) -> bool:
    """Whether one operand is what a caller passes, and the other may be the same: nothing says that they differ."""
    a, b = (operand.value.dtypes[lane] for operand in pair)
    return bool(a.mask & b.mask) and any(side.assumed and not side.certain for side in (a, b))


def _follows_default(facts: FileFacts, operand: Operand, lane: int) -> bool:
    """Whether an operand is what a plain attribute keeps of torch's default dtype, where that may be the model's: a
    model whose parameters keep explicit dtypes is mostly constructed under a default dtype of its own."""
    if not facts.scenarios[lane].keeps_explicit or operand.value.explicit:
        return False
    if operand.value.dtypes[lane].mask != FLOAT32 or any(o.cast or o.placed for o in behind(operand)):
        return False
    return any(place.kept for place in lineage(operand.value.origin, lane))


def _from_anyone(facts: FileFacts, operand: Operand, lane: int) -> bool:
    """Whether an operand's dtype is only assumed, of what a method of a class that is no module is passed."""
    dtype = operand.value.dtypes[lane]
    if not dtype.assumed or dtype.certain:
        return False
    return any(id(origin.node) in facts.anyones for origin in behind(operand))
