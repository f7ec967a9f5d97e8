"""The kinds of findings whose share of right ones at first sight is too low: ``amplint.judge.preview`` keeps them back.

A kind is what a rule finds proven, or likely, as an error or as a warning, that holds with half weights only, or under
autocast too. Counted are the newest fresh rounds until there are enough of it, each finding with the share of its
readers who called it right, and each package once: what is wrong with one finding is often wrong with its neighbours.

Back is kept what is clearly below, until it is clearly above: round after round, so that the rounds alone say it. A
kind of which hardly any judged finding is told now (``--again``) is no longer what was judged: it is told until it is
judged anew. Two rounds were drawn with all kept back that was below by any measure: no more of what was left was right
(62% and 63%, 63% before), and a third of the bugs in the lists was no longer found. Kinds that came back as soon as
they were below no longer were right in 59% of 400 findings since: replayed over the rounds, 67.3% of what is told is
right where they have to be clearly above, 66.4% otherwise.

Severity tells claims of one rule apart that share nothing else: constants that a dtype refuses (errors, 60% right) and
those that become infinite there (warnings, 22%); kernels that the newest torch lacks and those that an old one did.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from math import sqrt
from typing import TYPE_CHECKING

from amplint.finding import Certainty
from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.judge.doubts import LOSS_BY_VALUES
from amplint.judge.preview import FILE, Kind, of_rule
from judged.tally import pooled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.rounds import Drawn

    _Kind = tuple[str, bool, str, str]

_DEVIATIONS = 1.2816
"""Standard deviations below which nine in ten of normally distributed numbers lie."""
_ALL = tuple(certainty.value for certainty in Certainty)
STAYS = {
    **dict.fromkeys(("AMP101", "AMP106", "AMP107", "AMP201", "AMP202", "AMP204", "AMP602"), _ALL),
    "AMP102": (Certainty.PROVEN.value,),
    "AMP402": (Certainty.PROVEN.value,),
}
"""What stays on, by rule: what amplint was first asked to flag, and what finds the public incidents.

So does what torch confirms: a scaler that is used out of order raises in the mutants and in the known bugs. One of the
five packages in which readers met such a finding was right; two of the others are one project.

Of upcast operands that is what surely raises. Where autocast only undoes the upcast, 40% were right when this was
decided, since nobody opens a region around most such code; of what only may raise, 47%.
"""
AUTOCAST = {scenario.name for scenario in SCENARIOS if scenario.autocast}
ENOUGH, JUDGED, FEWEST = 0.6, 30, 4
"""The share of right ones below which a kind is in preview; how many packages with judged ones count, and how many
there must be.

Fifteen were too few: of AMP104's proven ones with half weights 43% are right in the newest 15 packages, 57% in 20, 60%
in 30 and in 60. Replayed over ten rounds, as many of what is told are right with 30 as with 15 (60% and 59%).
"""


def kinds(rounds: Iterable[Sequence[Drawn]]) -> list[Kind]:
    """Every kind of which enough findings were judged, by code. The oldest round is the first."""
    groups: dict[_Kind, list[Drawn]] = defaultdict(list)
    for rows in reversed(list(rounds)):
        latest: dict[_Kind, list[Drawn]] = defaultdict(list)
        for one in rows:
            if one.verdicts:
                half = not AUTOCAST.intersection(one.scenarios)
                latest[one.code, half, _certainty(one), one.severity].append(one)
        for kind, judged in latest.items():
            if len({other.place.package for other in groups[kind]}) < JUDGED:
                groups[kind] += judged
    judged_now = {kind: judged for kind, judged in sorted(groups.items()) if _packages(judged) >= FEWEST}
    shares = {kind: _shares(judged) for kind, judged in judged_now.items()}
    return [Kind(*kind, round(sum(of) / len(of), 3), len(of)) for kind, of in shares.items()]


def _packages(judged: Iterable[Drawn]) -> int:
    """In how many packages amplint still tells what was judged."""
    return len({one.place.package for one in judged if not one.gone})


def is_back(code: str, scenarios: Iterable[str], certainty: str, severity: str) -> bool:
    """Whether amplint keeps a finding back now, for its kind."""
    asked = (not AUTOCAST.intersection(scenarios), certainty, severity)
    return any((kind.half_weights_only, kind.certainty, kind.severity) == asked for kind in of_rule(code))


def _shares(judged: Iterable[Drawn]) -> list[float]:
    """The share of right ones in each package."""
    by_package: dict[str, list[Drawn]] = defaultdict(list)
    for one in judged:
        by_package[one.place.package].append(one)
    return [pooled(rows)["right"] / len(rows) for rows in by_package.values()]


def _certainty(one: Drawn) -> str:
    """What amplint calls a finding now: older versions called some proven that are likely at best."""
    return Certainty.LIKELY.value if one.code in LOSS_BY_VALUES.codes else one.certainty


def kept_back(rounds: Sequence[Sequence[Drawn]]) -> list[Kind]:
    """The kinds that amplint is to keep back after some rounds, of which the oldest is the first.

    One that was told goes with the round after which its share would hardly be enough if more were judged; one that is
    kept back stays until its share would hardly be too low.
    """
    back: list[Kind] = []
    for number in range(1, len(rounds) + 1):
        before = {_key(kind) for kind in back}
        back = [kind for kind in kinds(rounds[:number]) if _is_below(kind, back=_key(kind) in before)]
    return back


def _is_below(kind: Kind, *, back: bool) -> bool:
    stays = kind.certainty in STAYS.get(kind.code, ())
    return _bound(kind, -1 if back else 1) < ENOUGH and not stays


def _bound(kind: Kind, sign: int) -> float:
    """The lower (``sign`` -1) or upper (1) end of Wilson's interval for the share of right ones among all findings of
    the kind: nine times in ten the share is above the one, and nine times in ten below the other."""
    n, share = kind.packages, kind.right
    spread = _DEVIATIONS * sqrt(share * (1 - share) / n + _DEVIATIONS**2 / (4 * n * n))
    return (share + _DEVIATIONS**2 / (2 * n) + sign * spread) / (1 + _DEVIATIONS**2 / n)


def _key(kind: Kind) -> _Kind:
    return kind.code, kind.half_weights_only, kind.certainty, kind.severity


def write(back: Iterable[Kind]) -> None:
    """Have amplint keep these back."""
    FILE.write_text(json.dumps([asdict(kind) for kind in back], indent=1) + "\n", encoding="utf-8")


def lines(found: Iterable[Kind], back: Iterable[Kind]) -> Iterator[str]:
    """A line a kind, whether it is kept back or told."""
    kept = {_key(kind) for kind in back}
    for kind in found:
        yield f"{kind.code} {'preview' if _key(kind) in kept else 'told':7} {kind}"
