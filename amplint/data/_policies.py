"""What autocast does to a callable, and what older releases did, as keys of its entry in the table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._apart import OUTER, UNKNOWN, is_even, plainness, progress, setting_of, telling_arguments
from amplint.data._autocast import Policy, odd_runs, policy_runs, predicted, predicted_under, under_rule
from amplint.data._calls import Failure, Outcome
from amplint.data._rules import Seen, in_category, shape_of
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.data._measure import Facts

History = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True)
class Cast:
    """What one device's autocast does to one call: its policy there, and outcomes of policy runs and odd runs."""

    facts: Facts
    policy: Policy | None
    outcomes: list[Outcome]
    odd: list[Outcome]

    @property
    def kind(self) -> str:
        return self.policy.kind if self.policy else ""


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _since(device: str, operations: Iterable[str], table: History) -> str | None:
    """The release that brought the policy; none where a part of the function has had it all along."""
    found = [table[device].get(name, {}).get("since") for name in operations]
    return max((version for version in found if version), key=_version, default=None) if all(found) else None


def add_policies(name: str, entry: dict[str, Any], casts: dict[str, list[Cast]], history: History) -> None:
    """``policy``, ``since`` and ``under`` of an entry, and cases for calls that the plain ones do not speak for."""
    kinds: dict[str, str] = {}
    since: dict[str, str] = {}
    under: dict[str, Any] = {}
    unsure: dict[str, list[str]] = {}
    for device, found in casts.items():
        doubts: set[str] = set()
        counted = Counter(c.kind for c in found if is_even(c.facts) and OUTER not in c.facts.call.given())
        kind = next((kind for kind in counted if counted[kind] == max(counted.values())), "")
        if kind:
            kinds[device] = kind
            first = _since(
                device, [op for c in found if c.policy and c.kind == kind for op in c.policy.operations], history
            )
            if first:
                since[device] = first
        level = [cast for cast in found if is_even(cast.facts)] or found
        if not all(_explained(cast, kind or None, entry) for cast in found if cast not in level):
            doubts.add("uneven")
        odd = [cast for cast in level if not _explained(cast, kind or None, entry)]
        for cases, group in _odd_groups(odd, [cast for cast in level if cast not in odd]):
            like = [c for c in level if _case_of(entry, c.facts) is _case_of(entry, group[0].facts)]
            _add_odd(name, device, entry, under, cases, like if len(odd) < len(level) and not cases else group)
        for cast in level:
            special = _case_of(entry, cast.facts).get("under", under)
            doubts |= _unexplained(cast, kind or None, entry, special.get(device))
        if doubts and entry["result"] != "self":
            unsure[device] = sorted(doubts)
    if entry["result"] == "self":
        under = {}
    optional: dict[str, Any] = {"policy": kinds, "since": since, "under": under, "unsure_under": unsure}
    entry |= {key: value for key, value in optional.items() if value}


def add_older_results(name: str, entry: dict[str, Any]) -> None:
    """``before``: other results that an operation had before some release, from ``result_history.json``."""
    history = json.loads(Path(__file__).with_name("result_history.json").read_text())["before"]
    current = _version(torch.__version__.partition("+")[0])[:2]
    older = {release: rule for release, rule in history.get(name, {}).items() if _version(release) <= current}
    if older:
        entry["before"] = older


def _unexplained(cast: Cast, kind: str | None, entry: dict[str, Any], under: Any) -> set[str]:
    """Sorts of odd operands of which policy and rules say something else than comes out under autocast."""
    case = _case_of(entry, cast.facts)
    rule = case.get("result", entry["result"])
    setting = setting_of(cast.facts, entry["tensors"])
    found = set()
    for (label, dtypes), out in zip(odd_runs(cast.facts), cast.odd, strict=True):
        if isinstance(out, Failure) or kind == "banned" or not in_category(dtypes, entry.get("holds", "everything")):
            continue
        said = predicted(kind, rule, entry["tensors"], dtypes, setting, cast.facts.low)
        if under is not None and label == "other":
            said = predicted_under(under, entry["tensors"], dtypes, setting, cast.facts.low)
            if isinstance(said, list) and isinstance(rule, list):
                said = ["none" if part == "none" else one for one, part in zip(said, rule, strict=False)]
        if shape_of(out) == shape_of(cast.outcomes[0]) and not agrees(said, out):
            found.add(label)
    return found


def _case_of(entry: dict[str, Any], fact: Facts) -> dict[str, Any]:
    """The entry as the arguments of one call have it."""
    given = fact.call.given()
    return next((case for case in entry.get("cases", ()) if given >= set(case["needs"])), entry)


def _outcomes(cast: Cast, tensors: list[str]) -> list[Seen]:
    """The policy runs that did not raise."""
    runs = [dtypes for _, dtypes in policy_runs(cast.facts)]
    return [
        (dtypes, setting_of(cast.facts, tensors), out)
        for dtypes, out in zip(runs, cast.outcomes, strict=True)
        if not isinstance(out, Failure)
    ]


def _explained(cast: Cast, kind: str | None, entry: dict[str, Any]) -> bool:
    """Whether policy and result rule predict every outcome of a call under autocast."""
    if kind == "banned":
        return True
    rule = _case_of(entry, cast.facts).get("result", entry["result"])
    return all(
        agrees(predicted(kind, rule, entry["tensors"], dtypes, setting, cast.facts.low), out)
        for dtypes, setting, out in _outcomes(cast, entry["tensors"])
    )


def agrees(said: Any, out: Outcome) -> bool:
    """Whether a prediction (None where there is none, several where any may be) is what came out."""
    if said is None:
        return True
    if isinstance(said, set):
        return out in said
    if isinstance(said, list) and isinstance(out, list):
        return all(agrees(a, b) for a, b in zip(said, out, strict=False))
    return bool(said == (out.removeprefix("self:") if isinstance(out, str) else out))


def _odd_groups(odd: list[Cast], others: list[Cast]) -> list[tuple[list[list[str]], list[Cast]]]:
    """Calls that policy and rule do not explain, by the arguments that tell them from the rest."""
    if not odd:
        return []
    if not others:
        return _by_operands(odd)
    rest = [cast.facts for cast in others]
    needs = telling_arguments([cast.facts for cast in odd], rest)
    if needs:
        return [(needs, odd)]
    alone = [(telling_arguments([cast.facts], rest), [cast]) for cast in odd]
    return alone if all(found for found, _ in alone) else [([], odd)]


def _by_operands(odd: list[Cast]) -> list[tuple[list[list[str]], list[Cast]]]:
    """All calls, those with more operands than the plainest apart where it is an argument that tells them."""
    plain = min((cast.facts for cast in odd), key=plainness)
    own = {operand.name for operand in plain.operands}
    base = [cast for cast in odd if {operand.name for operand in cast.facts.operands} <= own]
    more = [cast for cast in odd if cast not in base]
    needs = telling_arguments([cast.facts for cast in more], [cast.facts for cast in base]) if more else []
    return [([], base), (needs, more)] if needs else [([], odd)]


def _add_odd(
    name: str, device: str, entry: dict[str, Any], under: dict[str, Any], needs: list[list[str]], group: list[Cast]
) -> None:
    runs: Sequence[Seen] = [run for cast in group for run in _outcomes(cast, entry["tensors"])]
    seen = [run for run in runs if shape_of(run[2]) == shape_of(runs[0][2])]
    rule = under_rule(seen, entry["tensors"], group[0].facts.low) if seen else None
    if rule is None:
        progress(f"{name} under {device}'s autocast follows no rule: {seen[:2]}")
        rule = UNKNOWN
    if not needs:
        under[device] = rule
    if under.get(device) == rule:
        return
    for names in needs:
        cases = entry.setdefault("cases", [])
        case = next((case for case in cases if case["needs"] == names), None)
        if case is None:
            case = {"needs": names}
            cases.append(case)
        case.setdefault("under", {})[device] = rule
