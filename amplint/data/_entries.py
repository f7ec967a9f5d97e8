"""From what was measured of one callable to its entry in the table."""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._autocast import Policy, odd_runs, policy_runs, predicted, predicted_under, under_rule
from amplint.data._calls import Call, Failure, Outcome, Target
from amplint.data._measure import Facts
from amplint.data._rules import CATEGORIES, Seen, Setting, flatten, in_category, shape_of, shaped_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Share of the calls with both operands that must raise for a pair to count as strict; rare argument values (a
#: convolution with ``padding="valid"``, say) take another path.
AGREEMENT = 0.75
UNKNOWN = "unknown"
#: An equation that sums over nothing: another operation than the one named.
OUTER = "equation=outer"
NUMBERS = (bool, int, float)
Rules = list[tuple[Any, list[Facts]]]
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


def progress(text: str) -> None:
    """Say on stderr how far the generator is, and what it found odd."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


# ---- parameters -------------------------------------------------------------------------------------------------


def _tensor_names(facts: list[Facts]) -> list[str]:
    """Parameters that hold floating tensors (else, integer ones), in positional order."""
    chosen = [f for f in facts if f.floating] or facts
    names = list(dict.fromkeys(operand.name for f in chosen for operand in f.operands))
    orders = sorted({f.call.params for f in chosen}, key=len, reverse=True)
    rank = {param: place for order in reversed(orders) for place, param in enumerate(order)}
    return sorted(names, key=lambda name: rank.get(name.rstrip("*"), len(rank) + 1))


def _params(facts: list[Facts], tensors: list[str]) -> tuple[str, ...]:
    """Parameters of the overload that takes the most of the tensors; the longest of those."""
    names = {name.rstrip("*") for name in tensors}
    common = Counter(f.call.params for f in facts)
    return max(common, key=lambda params: (len(names & set(params)), len(params), common[params]))


def plainness(fact: Facts) -> tuple[int, int, int]:
    """Calls with no switch on, then those with fewer arguments, show the usual behaviour."""
    given = fact.call.given()
    switched_on = [name for name in given if name.endswith(("=True", OUTER))]
    return len(switched_on), len([name for name in given if not name.endswith("=False")]), len(given)


def _needs(group: list[Facts], base: list[Facts]) -> list[list[str]]:
    """Parameters that all calls of the group pass and none of the base does; else one such parameter for each call."""
    base_given = set().union(*[f.call.given() for f in base])
    extra = [f.call.given() - base_given for f in group]
    common = set.intersection(*extra)
    if common:
        switches = sorted(name for name in common if name.endswith("=True"))
        return [sorted(name for name in common if name.isidentifier()) + switches or sorted(common)]
    single = sorted({min(names) for names in extra if len(names) == 1})
    return [[name] for name in single] if all(extra) else []


# ---- results ----------------------------------------------------------------------------------------------------


def setting_of(fact: Facts, tensors: list[str]) -> Setting:
    """The dimensions of a call's operands, and the Python numbers that it has where others have tensors."""
    kinds = {type(value) for name, value in fact.call.named() if name in tensors and type(value) in NUMBERS}
    return Setting(fact.operands, frozenset(kinds))


def _seen(group: Iterable[Facts], tensors: list[str], category: str) -> list[Seen]:
    return [
        (o.dtypes, setting_of(f, tensors), o.outcome)
        for f in group
        for o in f.observations
        if shape_of(o.outcome) == shape_of(f.observations[0].outcome)
        and (not f.floating or in_category(o.dtypes, category))
    ]


def _returns_list(name: str) -> bool:
    """Whether an aten overload of the name returns a list of tensors."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name.rpartition('.')[2]}")
    return any(str(r.type) == "List[Tensor]" for s in schemas for r in s.returns)


def _clusters(group: list[Facts], tensors: list[str], variable: bool, category: str) -> Rules | None:
    """Calls with results of one shape by the rule they share; None where one has no rule.

    In the last category those without one are together under "unknown".
    """
    whole = _seen(group, tensors, category)
    if not whole:
        return []
    rule = shaped_rule(whole, tensors, variable)
    if rule is not None:
        return [(rule, group)]
    found: Rules = []
    for fact in sorted([f for f in group if _seen([f], tensors, category)], key=plainness):
        if not _join(fact, found, tensors, variable, category):
            rule = shaped_rule(_seen([fact], tensors, category), tensors, variable)
            if rule is None and category != CATEGORIES[-1]:
                return None
            found.append((rule or UNKNOWN, [fact]))
    return [(rule, _drawn_to(place, found, tensors, variable, category)) for place, (rule, _) in enumerate(found)]


def _join(fact: Facts, found: Rules, tensors: list[str], variable: bool, category: str) -> bool:
    """Add a call to the first cluster whose rule, or a wider one, explains it too."""
    for place, (rule, members) in enumerate(found):
        joint = shaped_rule(_seen([*members, fact], tensors, category), tensors, variable) if rule != UNKNOWN else None
        if joint is not None:
            found[place] = (joint, [*members, fact])
            return True
    return False


def _drawn_to(place: int, found: Rules, tensors: list[str], variable: bool, category: str) -> list[Facts]:
    """The members of a cluster; a call that several explain goes to the one whose calls have arguments most like it."""
    drawn = []
    for fact in [fact for _, members in found for fact in members]:
        fitting = [
            i
            for i, (rule, members) in enumerate(found)
            if fact in members or shaped_rule(_seen([*members, fact], tensors, category), tensors, variable) == rule
        ]
        if max(fitting, key=lambda i: (_likeness(fact, found[i][1]), -i)) == place:
            drawn.append(fact)
    return drawn


def _likeness(fact: Facts, members: list[Facts]) -> float:
    """The share of arguments that a call has in common with the most alike of others."""
    own = fact.call.given()
    others = [f.call.given() for f in members if f is not fact]
    return max((len(own & given) / len(own | given) for given in others if own | given), default=0.0)


def _groups(name: str, facts: list[Facts]) -> tuple[list[list[Facts]], bool]:
    """Calls whose results have the same shape, and whether lists may have any length."""
    variable = _returns_list(name)
    if variable:
        lists = [isinstance(f.observations[0].outcome, list) for f in facts]
        split = ([f for f, many in zip(facts, lists, strict=True) if many == wanted] for wanted in (True, False))
        return [group for group in split if group], True
    by_shape: dict[str, list[Facts]] = {}
    for fact in facts:
        by_shape.setdefault(shape_of(fact.observations[0].outcome), []).append(fact)
    return list(by_shape.values()), False


def _results(name: str, facts: list[Facts], tensors: list[str]) -> dict[str, Any] | None:
    """``result``, ``holds``, ``even`` and ``cases``; None where no rule explains what was seen."""
    even = [f for f in facts if _is_even(f)]
    choices = [facts, even] if 0 < len(even) < len(facts) else [facts]
    for kept in choices:
        groups, variable = _groups(name, kept)
        for category in CATEGORIES:
            clusters = [_clusters(group, tensors, variable, category) for group in groups]
            if any(found is None for found in clusters):
                continue
            rules = sorted([pair for found in clusters for pair in found or [] if pair[1]], key=_plainest)
            if kept is not choices[-1] and any(rule == UNKNOWN for rule, _ in rules):
                break
            entry = _with_cases(kept, tensors, rules)
            if entry is not None:
                limits = {"holds": category} if category != "everything" else {}
                return {**entry, **limits, **({"even": True} if kept is not facts else {})}
    return None


def _plainest(pair: tuple[Any, list[Facts]]) -> tuple[bool, tuple[int, int, int]]:
    return pair[0] == UNKNOWN, min(plainness(fact) for fact in pair[1])


def _with_cases(facts: list[Facts], tensors: list[str], rules: Rules) -> dict[str, Any] | None:
    """The plainest call's rule, and the others as cases; None where the arguments do not tell them apart."""
    if not rules or rules[0][0] == UNKNOWN:
        return None
    base_rule, base = rules[0]
    entry: dict[str, Any] = {"result": base_rule}
    cases: list[dict[str, Any]] = []
    for rule, group in rules[1:]:
        needs = _needs(group, base) if rule != base_rule else []
        if rule != base_rule and not needs:
            return None
        for names in needs:
            same = next((case for case in cases if case["needs"] == names), None)
            if same is not None:
                same["result"] = _of_any_length(same["result"], rule)
                continue
            case: dict[str, Any] = {"needs": names, "result": rule}
            own = _params(group, tensors)
            if own != _params(facts, tensors) and {n.partition("=")[0] for n in names} & set(own):
                case["params"] = list(own)
            cases.append(case)
    if cases:
        entry["cases"] = sorted(cases, key=lambda case: -len(case["needs"]))
    return entry


def _of_any_length(one: Any, other: Any) -> Any:
    """One rule for results of the same rule, or for lists of different lengths with items of the same rule."""
    if one == other:
        return one
    items = {str(item) for rule in (one, other) for item in (rule if isinstance(rule, list) else [rule.rstrip("*")])}
    return items.pop() + "*" if len(items) == 1 else UNKNOWN


def _relevant(name: str, facts: list[Facts], tensors: list[str]) -> tuple[list[str], dict[str, Any] | None]:
    """Tensors and results; where no rule over all tensors holds, one that no other must agree with is left out."""
    if not tensors and any(f.numbers for f in facts):
        return tensors, {"result": "numbers"}
    results = _results(name, facts, tensors)
    bound = {param for pair in _agreed(facts) for param in pair}
    for dropped in tensors if results is None else ():
        if dropped not in bound:
            kept = [param for param in tensors if param != dropped]
            results = _results(name, [_without(f, dropped) for f in facts], kept)
            if results is not None:
                return kept, results
    return tensors, results


def _without(fact: Facts, param: str) -> Facts:
    """The same facts, blind to one parameter."""
    seen = [
        o._replace(dtypes={operand: dtype for operand, dtype in o.dtypes.items() if operand.name != param})
        for o in fact.observations
    ]
    operands = {operand: dims for operand, dims in fact.operands.items() if operand.name != param}
    return replace(fact, operands=operands, observations=seen)


# ---- operands that must agree -----------------------------------------------------------------------------------


def _votes(facts: list[Facts]) -> dict[tuple[str, str], list[tuple[Facts, bool]]]:
    """(call, raises) by (wide, narrow) pair; calls with a tensor of no dimensions count where there are no others."""
    votes: dict[tuple[str, str], list[tuple[bool, Facts, bool]]] = {}
    for fact in [f for f in facts if f.floating]:
        for a, b in itertools.permutations(fact.operands, 2):
            dimensioned = bool(fact.operands[a] and fact.operands[b])
            raises = (a, b) in fact.strict or (a, b) in fact.one_way
            votes.setdefault((a.name, b.name), []).append((dimensioned, fact, raises))
    counted = {pair: [v for v in cast if v[0]] or cast for pair, cast in votes.items()}
    return {pair: [(fact, raises) for _, fact, raises in cast] for pair, cast in counted.items()}


def _agreed(facts: list[Facts]) -> set[tuple[str, str]]:
    """(wide, narrow) parameters that raise in (nearly) every call that has both."""
    conditional = set().union(*_conditional(facts).values())
    shares = {pair: sum(raises for _, raises in cast) / len(cast) for pair, cast in _votes(facts).items()}
    return {pair for pair, share in shares.items() if share >= AGREEMENT and pair not in conditional}


def _conditional(facts: list[Facts]) -> dict[str, set[tuple[str, str]]]:
    """(wide, narrow) pairs that raise only where a certain other parameter holds no floating tensor."""
    found: dict[str, set[tuple[str, str]]] = {}
    params = {operand.name for fact in facts for operand in fact.operands}
    for pair, cast in _votes(facts).items():
        for param in params:
            has = [(param in {o.name for o in fact.operands}, raises) for fact, raises in cast]
            told = {present for present, _ in has} == {True, False}
            if param not in pair and told and all(present != raises for present, raises in has):
                found.setdefault(param, set()).add(pair)
    return found


def _strict_without(facts: list[Facts], tensors: list[str]) -> dict[str, list[list[str]]]:
    """Groups that must agree only where a certain other parameter holds no floating tensor (a soft target, say)."""
    found = sorted(_conditional(facts).items())
    both = {param: {(a, b) for a, b in pairs if (b, a) in pairs} for param, pairs in found}
    return {param: _strict_groups(pairs, tensors) for param, pairs in both.items() if pairs}


def _strict_groups(pairs: set[tuple[str, str]], tensors: list[str]) -> list[list[str]]:
    """Connected parameters; a list whose own items must agree is a group even alone."""
    groups: list[set[str]] = []
    for pair in sorted(pairs):
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching] + [set(pair).union(*touching)]
    return sorted([sorted(group, key=tensors.index) for group in groups], key=lambda g: tensors.index(g[0]))


# ---- the rest of an entry ---------------------------------------------------------------------------------------


def _decided_by_dtype(call: Call) -> bool:
    """Whether ``dtype=`` sets the result's dtype."""
    if "dtype" in call.kwargs:
        return False
    again = replace(call, kwargs={**call.kwargs, "dtype": torch.float64})
    return bool(again.run({}) == "float64" != call.run({}))


def _follows_default(call: Call) -> bool:
    """Whether a constructor gives the default dtype."""
    torch.set_default_dtype(torch.float64)
    try:
        return bool(call.run({}) == "float64")
    finally:
        torch.set_default_dtype(torch.float32)


def _scalar(facts: list[Facts]) -> dict[str, Any]:
    """``scalar``: parameters without which the result has no dimensions; null where it may lose some."""
    dimensioned = [f for f in facts if any(f.operands.values())]
    none = [f for f in dimensioned if f.size == "none"]
    others = [f for f in dimensioned if f.size != "none"]
    if not none and not any(f.size == "less" for f in others):
        return {}
    if not others:
        return {"scalar": []}
    matrices = [f for f in none if any(dims > 1 for dims in f.operands.values())]
    if not matrices and all(len(f.operands) > 1 for f in none):
        return {}  # the product of two vectors
    if not matrices:
        return {"scalar": None}
    plainest = min((f.call.given() for f in matrices), key=len)
    extra = [{name for name in f.call.given() - plainest if name.isidentifier()} for f in others]
    keeping: set[str] = set()
    while all(extra):
        common = Counter(name for names in extra for name in names)
        if not common:
            return {"scalar": sorted(keeping)}
        keeping.add(max(sorted(common), key=lambda name: common[name]))
        extra = [names for names in extra if not names & keeping]
    return {"scalar": None}


def _starts_complex(call: Call) -> bool:
    return any(isinstance(value, torch.Tensor) and value.is_complex() for _, value in itertools.islice(call.named(), 1))


def entry_of(target: Target, facts: list[Facts]) -> dict[str, Any] | None:
    """All of an entry but what autocast does; None where no rule explains the results."""
    if any(not f.floating for f in facts) and all(_starts_complex(f.call) for f in facts):
        facts = [f for f in facts if not f.floating]
    outer = [f for f in facts if OUTER in f.call.given()]
    facts = [f for f in facts if f not in outer]
    tensors, results = _relevant(target.name, facts, _tensor_names(facts))
    if results is None:
        return None
    apart = _results(target.name, outer, tensors) if outer else None
    if apart is not None:
        results["cases"] = [{"needs": [OUTER], **apart}, *results.get("cases", [])]
    entry: dict[str, Any] = {"params": list(_params(facts, tensors)), "tensors": tensors, **results}
    plain = [f.call for f in facts if not f.operands]
    if entry["result"] == "float32" and plain and all(map(_follows_default, plain)):
        entry["result"] = "default"
    if any(f.call.variadic for f in facts):
        entry["variadic"] = entry["params"][-1]
    if any(_decided_by_dtype(f.call) for f in facts):
        entry["dtype_arg"] = "dtype"
    agreed = _agreed(facts)
    strict = {(a, b) for a, b in agreed if (b, a) in agreed}
    for case in entry.get("cases", ()):
        own = [f for f in [*facts, *outer] if f.call.given() >= set(case["needs"]) and len(f.operands) > 1]
        if strict and own and not any(f.strict for f in own):
            case["strict"] = []
    optional: dict[str, Any] = {
        "fields": next((list(f.fields) for f in facts if f.fields), []),
        "numbers": sorted(set().union(*[f.numbers for f in facts])),
        "strict": _strict_groups(strict, tensors),
        "one_way": sorted([a, b] for a, b in agreed - strict),
        "strict_without": _strict_without(facts, tensors),
        "unsupported": target.unsupported,
    }
    if not flatten(entry["result"])[0].startswith(("none", "py:")):
        entry |= _scalar(facts)
    return {**entry, **{key: value for key, value in optional.items() if value}}


# ---- autocast ---------------------------------------------------------------------------------------------------


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _since(device: str, operations: Iterable[str], table: History) -> str | None:
    found = [table[device].get(name, {}).get("since") for name in operations]
    return max((version for version in found if version), key=_version, default=None)


def add_policies(name: str, entry: dict[str, Any], casts: dict[str, list[Cast]], history: History) -> None:
    """``policy``, ``since`` and ``under`` of an entry, and cases for calls that the plain ones do not speak for."""
    kinds: dict[str, str] = {}
    since: dict[str, str] = {}
    under: dict[str, Any] = {}
    unsure: set[str] = set()
    for device, found in casts.items():
        counted = Counter(c.kind for c in found if _is_even(c.facts) and OUTER not in c.facts.call.given())
        kind = next((kind for kind in counted if counted[kind] == max(counted.values())), "")
        if kind:
            kinds[device] = kind
            first = _since(
                device, [op for c in found if c.policy and c.kind == kind for op in c.policy.operations], history
            )
            if first:
                since[device] = first
        level = [cast for cast in found if _is_even(cast.facts)] or found
        if not all(_explained(cast, kind or None, entry) for cast in found if cast not in level):
            unsure.add("uneven")
        odd = [cast for cast in level if not _explained(cast, kind or None, entry)]
        for cases, group in _odd_groups(odd, [cast for cast in level if cast not in odd]):
            like = [c for c in level if _case_of(entry, c.facts) is _case_of(entry, group[0].facts)]
            _add_odd(name, device, entry, under, cases, like if len(odd) < len(level) and not cases else group)
        for cast in level:
            special = _case_of(entry, cast.facts).get("under", under)
            unsure |= _unexplained(cast, kind or None, entry, special.get(device))
    if entry["result"] == "self":
        under, unsure = {}, set()
    optional: dict[str, Any] = {"policy": kinds, "since": since, "under": under, "unsure_under": sorted(unsure)}
    entry |= {key: value for key, value in optional.items() if value}


def _is_even(fact: Facts) -> bool:
    """Whether no tensor without dimensions stands beside one with some."""
    return len({dims > 0 for dims in fact.operands.values()}) < 2


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
    needs = _needs([cast.facts for cast in odd], rest)
    if needs:
        return [(needs, odd)]
    alone = [(_needs([cast.facts], rest), [cast]) for cast in odd]
    return alone if all(found for found, _ in alone) else [([], odd)]


def _by_operands(odd: list[Cast]) -> list[tuple[list[list[str]], list[Cast]]]:
    """All calls, those with more operands than the plainest apart where it is an argument that tells them."""
    plain = min((cast.facts for cast in odd), key=plainness)
    own = {operand.name for operand in plain.operands}
    base = [cast for cast in odd if {operand.name for operand in cast.facts.operands} <= own]
    more = [cast for cast in odd if cast not in base]
    needs = _needs([cast.facts for cast in more], [cast.facts for cast in base]) if more else []
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
        return
    for names in needs:
        cases = entry.setdefault("cases", [])
        case = next((case for case in cases if case["needs"] == names), None)
        if case is None:
            case = {"needs": names}
            cases.append(case)
        case.setdefault("under", {})[device] = rule
