"""Which suspects a run tells: what the options ask for, and what the file itself says of where they stand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from amplint.infer.syntax.scripts import is_test
from amplint.judge import doubts
from amplint.judge.certainty import holding
from amplint.judge.preview import in_preview

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.claims.suspect import Suspect
    from amplint.finding import Doubt
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.state.facts import FileFacts
    from amplint.rule_base import Rule


class Asked(Protocol):
    """What of a run's options decides it: see :class:`amplint.engine.Options`."""

    @property
    def scenarios(self) -> tuple[Scenario, ...] | None: ...
    @property
    def asked(self) -> frozenset[str]: ...
    @property
    def dropped(self) -> bool: ...


def standing(suspects: Iterable[Suspect], options: Asked) -> Iterator[Suspect]:
    """Those that no doubt drops, or all of them where what is dropped was asked for."""
    for suspect in suspects:
        if suspect.standing.certainty is not None:
            yield suspect
        elif options.dropped:
            yield replace(suspect, standing=suspect.standing.kept)


def weighed(
    suspect: Suspect, rule: Rule, facts: FileFacts, options: Asked, blocks: tuple[tuple[int, int], ...]
) -> Suspect:
    """A suspect, doubted where no scenario reaches it.

    That is what only a script or a test runs, autocast where a test has none (see
    :mod:`amplint.infer.syntax.scripts`), and where only half weights show it and nothing that owns weights leads there,
    or no call of such a module (see :mod:`amplint.infer.entry.weight_reach`); and where its kind is in preview. Who
    names the scenarios means them everywhere.
    """
    from amplint.claims.conflicts import unreached, unused
    from amplint.claims.forward_first import ended_in_forward

    behind = unreached(facts, suspect.span)
    if rule.code in doubts.FAILS_BEFORE.codes and suspect.standing.told:
        behind |= ended_in_forward(facts, suspect.span.start.row)
    if rule.code in doubts.ROUNDED and suspect.standing.told:
        behind |= unused(facts, suspect.span.start.row)
    if behind and rule.code in doubts.FAILS_BEFORE.codes:
        reached = tuple(name for name in suspect.scenarios if name not in behind)
        suspect = replace(suspect, scenarios=reached) if reached else suspect.doubted(doubts.FAILS_BEFORE)
    if rule.code in doubts.LOSS_BY_VALUES.codes:
        suspect = suspect.doubted(doubts.LOSS_BY_VALUES)
    row, half = suspect.span.start.row, facts.half_weights_only(suspect.scenarios)
    if options.scenarios is not None:
        return suspect.doubted(*_preview(suspect, rule, options, half))
    weights = half and rule.of_weights
    owned = not (weights and suspect.of_weights) or facts.runs_on_weights(row)
    if weights and rule.code in doubts.FOR_USERS.codes and not facts.runs_when_called(row):
        suspect = suspect.doubted(doubts.FOR_USERS)
    held = {
        doubts.RUN_IN_FULL_PRECISION: any(first <= row <= last for first, last in blocks),
        doubts.IN_A_TEST: rule.code in doubts.IN_A_TEST.codes and is_test(facts.source.tree),
        doubts.NO_WEIGHTS: not owned,
    }
    return suspect.doubted(*holding(held), *_preview(suspect, rule, options, half))


def _preview(suspect: Suspect, rule: Rule, options: Asked, half_weights_only: bool) -> tuple[Doubt, ...]:
    """The doubt for kinds in preview, where it holds (see :mod:`amplint.judge.preview`)."""
    severity = suspect.severity or rule.severity
    back = in_preview(rule.code, half_weights_only, suspect.standing.certainty, severity)
    return (doubts.PREVIEW,) if back and rule.code not in options.asked else ()
