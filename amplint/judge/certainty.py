"""From what the facts force and the doubts that hold to a certainty: the only place that chooses one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.finding import Certainty, Doubt, Effect, HeldDoubt
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amplint.source import Span

SUREST_FIRST = (Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE, None)


def certainty(forced: bool, effects: Iterable[Effect]) -> Certainty | None:
    """How sure a claim is that the facts force, or that rests on what a caller is assumed to pass.

    Each effect is that of a doubt that holds. None: the claim is dropped.
    """
    lowered = set(effects)
    if Effect.DROP in lowered:
        return None
    if Effect.POSSIBLE in lowered:
        return Certainty.POSSIBLE
    return Certainty.PROVEN if forced and Effect.LIKELY not in lowered else Certainty.LIKELY


def holding(asked: Mapping[Doubt, bool]) -> list[Doubt]:
    """The doubts whose question is answered with yes."""
    return [doubt for doubt, holds in asked.items() if holds]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a claim stands: whether the facts force it, and the doubts that hold about it, the first ones first."""

    forced: bool
    held: tuple[HeldDoubt, ...] = ()

    @property
    def certainty(self) -> Certainty | None:
        """None where a doubt drops the claim."""
        return certainty(self.forced, (held.doubt.effect for held in self.held))

    @property
    def rank(self) -> int:
        """Smaller for what is surer."""
        return SUREST_FIRST.index(self.certainty)

    @property
    def proven(self) -> bool:
        return self.certainty is Certainty.PROVEN

    @property
    def told(self) -> bool:
        """Whether a run tells it without being asked for what is merely possible."""
        return self.certainty in (Certainty.PROVEN, Certainty.LIKELY)

    @property
    def lowering(self) -> tuple[HeldDoubt, ...]:
        """The doubts that lower the certainty: not those that leave it at least as high as the facts alone do."""
        alone = certainty(self.forced, ())
        return tuple(held for held in self.held if certainty(self.forced, (held.doubt.effect,)) is not alone)

    @property
    def kept(self) -> Standing:
        """The same, where what drops a claim leaves it possible."""
        return Standing(self.forced, tuple(map(_leaving_possible, self.held)))

    def doubted(self, *doubts: Doubt, span: Span | None = None) -> Standing:
        """The same claim with further doubts, all of which are seen at ``span``; each counts once."""
        known = {held.doubt for held in self.held}
        new = (HeldDoubt(doubt, span) for doubt in dict.fromkeys(doubts) if doubt not in known)
        return Standing(self.forced, (*self.held, *new))


def _leaving_possible(held: HeldDoubt) -> HeldDoubt:
    drops = held.doubt.effect is Effect.DROP
    return replace(held, doubt=replace(held.doubt, effect=Effect.POSSIBLE)) if drops else held


FORCED = Standing(forced=True)
"""The facts force the claim, and nothing speaks against it."""
ASSUMED = Standing(forced=False)
"""The claim rests on what a caller, a loaded model or compiled code is assumed to do."""
