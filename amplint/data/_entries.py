"""From what was measured of one callable to its entry in the table, but for what autocast does."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._apart import OUTER, UNKNOWN, is_even, plainness, setting_of, telling_arguments
from amplint.data._measure import Facts
from amplint.data._rules import CATEGORIES, Seen, flatten, in_category, shape_of, shaped_rule
from amplint.data._strictness import agreed_pairs, bare, strict_groups, strict_without

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.data._calls import Call, Target

Rules = list[tuple[Any, list[Facts]]]


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


# ---- results ----------------------------------------------------------------------------------------------------


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
    even = [f for f in facts if is_even(f)]
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
        needs = telling_arguments(group, base) if rule != base_rule else []
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
    bound = {param for pair in agreed_pairs(facts) for param in pair}
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


def _dimensioned(facts: list[Facts]) -> dict[str, Any]:
    """``dimensioned``: the result has dimensions whatever the tensors have, which no run of the call refutes."""
    return {"dimensioned": True} if all(f.dimensioned for f in facts) else {}


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
    agreed = agreed_pairs(facts)
    strict = {(a, b) for a, b in agreed if (b, a) in agreed}
    for case in entry.get("cases", ()):
        own = [f for f in [*facts, *outer] if f.call.given() >= set(case["needs"]) and len(f.operands) > 1]
        if strict and own and not any(f.strict for f in own):
            case["strict"] = []
    optional: dict[str, Any] = {
        "fields": next((list(f.fields) for f in facts if f.fields), []),
        "numbers": sorted(set().union(*[f.numbers for f in facts])),
        "strict": strict_groups(strict, tensors),
        "bare": bare(facts, strict),
        "one_way": sorted([a, b] for a, b in agreed - strict),
        "strict_without": strict_without(facts, tensors),
        "unsupported": target.unsupported,
        "unsupported_but": target.only_with,
        "unsupported_with": target.refused_with,
        "unsupported_until": target.unsupported_until,
    }
    if not flatten(entry["result"])[0].startswith(("none", "py:")):
        entry |= _scalar(facts) or _dimensioned(facts)
    return {**entry, **{key: value for key, value in optional.items() if value}}
