"""Tensors made without the dtype that they need, where no operation of the file shows it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.claims.device_followers import followers
from amplint.claims.round_trips import round_trips
from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import likely_loss
from amplint.finding import Cause
from amplint.judge import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts


def forgotten(facts: FileFacts) -> Iterator[Suspect]:
    """What comes back from outside of torch, what compiled code reads, what follows weights to their device only."""
    yield from _brought_back(facts)
    yield from _addressed(facts)
    yield from _following(facts)


def _brought_back(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each tensor that gets its device back after numpy or a feature extractor, but not its dtype."""
    leaves = any(method in facts.source.data for method in (b"numpy", b"tolist"))
    for trip in round_trips(facts.source.tree, Surroundings.of(facts.source.tree)) if leaves else ():
        low = [s for s in facts.scenarios if s.inputs != "float32" and (trip.widened or s.inputs == "float16")]
        if low:
            message = (
                f"made from `{trip.tensor}` outside torch, this gets its device back but not its dtype: "
                f"`{ast.unparse(trip.sink.func)}` gets float32"
            )
            causes = (
                Cause(facts.path, facts.span(trip.leaves), f"`{trip.tensor}` leaves torch here"),
                Cause(facts.path, facts.span(trip.sink), "what it is given to is in the dtype of the model"),
            )
            yield likely_loss(facts, trip.back, message, tuple(s.name for s in low), causes, trip)


def _addressed(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each tensor of the default dtype that compiled code reads by its address."""
    scenarios = tuple(s.name for s in facts.scenarios if s.parameters != "float32" and s.alias is not None)
    for made in facts.addressed if scenarios else ():
        message = (
            f"{made.what.split(' ', 1)[0]} has torch's default dtype, which may be 16 bit; "
            "compiled code that reads it does not ask: pass dtype="
        )
        found = replace(likely_loss(facts, made.node, message, scenarios, made.causes, made), of_weights=False)
        yield found if made.low_default else found.doubted(doubts.DEFAULT_UNSEEN)


def _following(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each parameter that takes its device from given weights, and its dtype from torch."""
    scenarios = tuple(s.name for s in facts.scenarios if s.keeps_explicit)
    for follower in followers(facts) if scenarios else ():
        message = (
            f"this parameter takes the device of `{ast.unparse(follower.weight)}` but not its dtype: "
            "beside half weights it stays float32"
        )
        yield likely_loss(facts, follower.node, message, scenarios, data=follower)
