"""What gave an operand its dtype: autocast, a cast, a constructor, a parameter put beside a layer of a loaded model."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from amplint.infer.dtypes import FLOAT32, LOW, names_of
from amplint.infer.facts import MadeOperand
from amplint.infer.origins import deciding, lineage
from amplint.infer.values import Made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.facts import Operand
    from amplint.infer.frame import Frame
    from amplint.infer.values import Origin, Tensor

MAX_ORIGINS = 200
"""Places that are looked back through for what made a dtype."""


def autocast_made(operand: Operand, lane: int) -> bool:
    """Whether autocast, on some path, made an operand low precision in a scenario."""
    return any(o.autocast >> lane & 1 and bool(o.dtypes[lane].mask & LOW) for o in _behind(operand))


def beside_its_own(pair: tuple[Operand, Operand], lane: int) -> bool:
    """Whether one operand is what a module was passed, and the other was made low precision, by autocast, of that."""
    for given, made in (pair, pair[::-1]):
        origin = given.value.origin
        passed = origin is not None and isinstance(origin.node, ast.arg) and given.value.dtypes[lane].assumed
        if passed and made.value.dtypes[lane].exact and autocast_made(made, lane):
            return any(place.node is origin.node for place in _behind(made) if origin is not None)
    return False


def was_added(operand: Operand, lane: int) -> bool:
    """Whether a parameter put beside a layer that was there before is what made an operand float32 in a scenario."""
    return any(o.made is Made.ADDED and o.dtypes[lane].mask == FLOAT32 for o in _behind(operand))


def follows_default(frame: Frame, operand: Operand, lane: int) -> bool:
    """Whether an operand is what a plain attribute keeps of torch's default dtype, where that may be the model's: a
    model whose parameters keep explicit dtypes is mostly constructed under a default dtype of its own."""
    if not frame.session.scenarios[lane].keeps_explicit or operand.value.explicit:
        return False
    if operand.value.dtypes[lane].mask != FLOAT32 or any(o.cast or o.placed for o in _behind(operand)):
        return False
    return any(place.kept for place in lineage(operand.value.origin, lane))


def came_with(frame: Frame, operand: Operand) -> bool:
    """Whether a constructor was given something that an operand's dtype depends on: it may be of the same making."""
    return any(id(origin.node) in frame.session.given for origin in _behind(operand))


def from_anyone(frame: Frame, operand: Operand, lane: int) -> bool:
    """Whether an operand's dtype is only assumed, of what a method of a class that is no module is passed."""
    dtype = operand.value.dtypes[lane]
    if not dtype.assumed or dtype.certain:
        return False
    return any(id(origin.node) in frame.session.anyones for origin in _behind(operand))


def _behind(operand: Operand) -> Iterator[Origin]:
    """Every place that an operand's dtype depends on, on any path."""
    pending = [operand.value.origin]
    seen: set[int] = set()
    while pending and len(seen) < MAX_ORIGINS:
        origin = pending.pop()
        if origin is None or id(origin) in seen:
            continue
        seen.add(id(origin))
        yield origin
        pending.extend(origin.parents)


def made_in(pair: tuple[Operand, Operand], lane: int) -> MadeOperand | None:
    """The operand, of two, that got its dtype where it was made, and from no other tensor.

    A parameter is its module's own affair, and what a caller passes the caller's.
    """
    for operand in pair:
        places = list(lineage(operand.value.origin, lane))
        if not places or operand.value.leaf or any(place.placed and not place.kept for place in places):
            continue
        maker = places[-1]
        if maker.made is not None and not maker.dtypes[lane].mask & LOW:
            where = next((place for place in places if place.kept), None)
            kept: Literal["buffer", "attribute"] | None = None
            if where is not None:
                kept = "buffer" if where.placed else "attribute"
            return MadeOperand(operand, maker, kept, kept is not None or maker.made is Made.WRITTEN)
    return None


def is_upcast(tensor: Tensor, lane: int) -> bool:
    """Whether a written cast to float32 or float64, and not of integers, decided the dtype in a scenario."""
    origin = deciding(tensor.origin, lane, through_modules=False)
    if origin is None or not origin.cast or origin.made is Made.CONVERTED:
        return False
    return "float32" in names_of(origin.dtypes[lane].mask) or "float64" in names_of(origin.dtypes[lane].mask)
