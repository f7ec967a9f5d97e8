"""Generates ``ops.json``: what torch operations do to dtypes, with and without autocast.

Usage: ``python -m amplint.data.generate_ops [OUT] [--only NAME ...]`` (a few minutes; ``--only`` prints nothing else).

Every entry is measured by running the callable on small CPU tensors in many combinations of dtypes: without autocast,
under the CPU's own autocast, and under the policies of cuda, mps and xpu put over CPU kernels (``amplint.emulation``),
each in a child process.  ``unsupported`` comes from OpInfo's declarations, ``since`` from ``policy_history.json``: the
first torch release on record from which on the policy holds.  Parameters are those of the installed torch.

Keys beyond the plain ones:

* ``cases``: results that differ where the parameters in ``needs`` are passed (not None, not False), with ``params`` of
  that overload where they differ; ``needs`` may name ``p=False``, a switch that is True by default.
* ``variadic``: a parameter that gathers ``*args``.
* ``strict_without``: groups that are strict only where the parameter that is the key holds no floating tensor.

A result that ends in ``*`` is a list or tuple of unfixed length; ``self`` is the first parameter, changed in place.
Tensors without dimensions do not promote ones that have some; the table does not repeat that for every operation.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._calls import Call, Failure, Target
from amplint.data._catalog import catalog
from amplint.data._measure import (
    Facts,
    Policy,
    Seen,
    autocast_outcomes,
    measure,
    plain_outcomes,
    policy,
    result_rule,
    shape_of,
)
from amplint.data.generate_policy import dump
from amplint.emulation import calls, install
from amplint.emulation import policies as policies_of

if TYPE_CHECKING:
    from collections.abc import Iterable

DEVICES = ("cuda", "cpu", "mps", "xpu")
POLICY_CALLS = 4
#: Share of the calls with both operands that must raise for a pair to count as strict; rare argument values (a
#: convolution with ``padding="valid"``, say) take another path.
AGREEMENT = 0.75
Measured = dict[str, list[Facts]]
Policies = dict[str, list[Policy | None]]


def _progress(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


# ---- autocast regimes, one child process each -------------------------------------------------------------------


def _regime(device: str, measured: Measured, queue: Any) -> None:
    """Measure the policy of every call under one device's autocast (runs in the child)."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    picked = {name: _telling(facts) for name, facts in measured.items()}
    plain = {name: [plain_outcomes(f) for f in facts] for name, facts in picked.items()}
    real = {name: [autocast_outcomes(f) for f in facts] for name, facts in picked.items()} if device == "cpu" else {}
    install(device)
    found: Policies = {}
    unlike: list[str] = []
    with calls() as log:
        for name, facts in picked.items():
            found[name] = []
            for position, fact in enumerate(facts):
                log.clear()
                cast = autocast_outcomes(fact)
                if real and not _alike(real[name][position], cast):
                    unlike.append(name)
                found[name].append(policy(fact, plain[name][position], real[name][position] if real else cast, log))
    queue.put((device, found, sorted(set(unlike))))


def _telling(facts: list[Facts]) -> list[Facts]:
    """The calls on which policies are measured: with dimensioned tensors if possible, fewest arguments first."""
    floating = [f for f in facts if f.floating]
    dimensioned = [f for f in floating if all(f.operands.values())]
    return sorted(dimensioned or floating, key=_plainness)[:POLICY_CALLS]


def _alike(one: list[Any], other: list[Any]) -> bool:
    """The same outcomes, whatever the error texts."""
    return all(a == b or (isinstance(a, Failure) and isinstance(b, Failure)) for a, b in zip(one, other, strict=True))


def _policies(measured: Measured) -> dict[str, Policies]:
    """Policies by device; children are forked, so that they see the same calls."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_regime, args=(device, measured, queue)) for device in DEVICES]
    result: dict[str, Policies] = {}
    for started in range(0, len(children), 2):
        pair = children[started : started + 2]
        for child in pair:
            child.start()
        for _ in pair:
            device, found, unlike = queue.get(timeout=900)
            result[device] = found
            _progress(f"policies under {device} measured")
            if unlike:
                _progress(f"the emulated CPU policy differs from the real one: {', '.join(unlike)}")
        for child in pair:
            child.join()
    return result


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _since(device: str, operations: Iterable[str], table: dict[str, dict[str, dict[str, str]]]) -> str | None:
    found = [table[device].get(name, {}).get("since") for name in operations]
    return max((version for version in found if version), key=_version, default=None)


def _policy_entry(
    name: str, policies: dict[str, Policies], table: dict[str, dict[str, dict[str, str]]]
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Effective policies, their ``since``, and the devices on which calls disagree (the commonest one is taken)."""
    kinds: dict[str, str] = {}
    since: dict[str, str] = {}
    split = []
    for device in DEVICES if policies["cuda"][name] else ():
        found = policies[device][name]
        counted = Counter(p.kind if p else "" for p in found)
        most = max(counted.values())
        kind = next(kind for kind in counted if counted[kind] == most)
        if len(counted) > 1:
            split.append(f"{device} {dict(counted)}")
        if kind:
            kinds[device] = kind
            first = _since(device, [op for p in found if p and p.kind == kind for op in p.operations], table)
            if first:
                since[device] = first
    return kinds, since, split


# ---- one entry --------------------------------------------------------------------------------------------------


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


def _groups(facts: list[Facts]) -> list[list[Facts]]:
    """Calls whose results have the same shape."""
    by_shape: dict[str, list[Facts]] = {}
    for fact in facts:
        by_shape.setdefault(shape_of(fact.observations[0].outcome), []).append(fact)
    return [[f for f in group if _evenly_dimensioned(f)] or group for group in by_shape.values()]


def _evenly_dimensioned(fact: Facts) -> bool:
    """Whether no tensor without dimensions stands beside one with some; promotion there is the reader's to know."""
    return len({dims > 0 for dims in fact.operands.values()}) < 2


def _seen(group: list[Facts]) -> list[Seen]:
    return [
        (o.dtypes, f.operands, o.outcome)
        for f in group
        for o in f.observations
        if shape_of(o.outcome) == shape_of(f.observations[0].outcome)
    ]


def _returns_list(name: str) -> bool:
    """Whether an aten overload of the name returns a list of tensors."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name.rpartition('.')[2]}")
    return any(str(r.type) == "List[Tensor]" for s in schemas for r in s.returns)


def _by_rule(group: list[Facts], tensors: list[str], variable: bool) -> list[tuple[Any, list[Facts]]]:
    """(rule, calls): one rule for all of them where there is one, else the calls grouped by the rule of each."""
    rule = result_rule(_seen(group), tensors, variable)
    if rule is not None:
        return [(rule, group)]
    found: dict[str, tuple[Any, list[Facts]]] = {}
    for fact in group:
        rule = result_rule(_seen([fact]), tensors, variable)
        if rule is None:
            return []
        found.setdefault(str(rule), (rule, []))[1].append(fact)
    return list(found.values())


def _needs(group: list[Facts], base: list[Facts]) -> list[list[str]]:
    """Parameters that all calls of the group pass and none of the base does; else one such parameter for each call."""
    base_given = set().union(*[f.call.given() for f in base])
    extra = [f.call.given() - base_given for f in group]
    common = set.intersection(*extra)
    if common:
        return [sorted(name for name in common if "=" not in name) or sorted(common)]
    single = sorted({min(names) for names in extra if len(names) == 1})
    return [[name] for name in single] if all(extra) else []


def _plainness(fact: Facts) -> tuple[int, int]:
    """Calls with fewer arguments, other than switches that are off, show the usual behaviour."""
    given = fact.call.given()
    return len([name for name in given if "=" not in name]), len(given)


def _results(name: str, facts: list[Facts], tensors: list[str]) -> dict[str, Any] | None:
    """``result`` and ``cases``; None where no rule explains what was seen."""
    variable = _returns_list(name)
    groups = _groups(facts)
    if variable:
        lists = [isinstance(f.observations[0].outcome, list) for f in facts]
        split = ([f for f, many in zip(facts, lists, strict=True) if many == wanted] for wanted in (True, False))
        groups = [group for group in split if group]
    rules = [pair for group in groups for pair in _by_rule(group, tensors, variable)]
    if not rules:
        return None
    rules.sort(key=lambda pair: min(_plainness(f) for f in pair[1]))
    base_rule, base = rules[0]
    entry: dict[str, Any] = {"result": base_rule}
    cases = []
    for rule, group in rules[1:]:
        needs = _needs(group, base) if rule != base_rule else []
        if rule != base_rule and not needs:
            if not tensors:
                return None  # decided by the values of numbers
            _progress(f"{name}: {rule} beside {base_rule}, and no parameter tells them apart")
        for names in needs:
            case = {"needs": names, "result": rule}
            own = _params(group, tensors)
            if own != _params(facts, tensors) and {n.partition("=")[0] for n in names} & set(own):
                case["params"] = list(own)
            cases.append(case)
    if cases:
        entry["cases"] = cases
    return entry


def _relevant(name: str, facts: list[Facts], tensors: list[str]) -> tuple[list[str], dict[str, Any] | None]:
    """Tensors and results; where no rule over all tensors holds, one that no other must agree with is left out."""
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


def _votes(facts: list[Facts]) -> dict[tuple[str, str], list[tuple[Facts, bool]]]:
    """(call, raises) by (wide, narrow) pair; calls with a tensor of no dimensions count where there are no others."""
    votes: dict[tuple[str, str], list[tuple[bool, Facts, bool]]] = {}
    for fact in facts if all(f.floating for f in facts) else [f for f in facts if f.floating]:
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


def _decided_by_dtype(call: Call) -> bool:
    """Whether ``dtype=`` sets the result's dtype."""
    if "dtype" in call.kwargs:
        return False
    again = Call(call.function, call.args, {**call.kwargs, "dtype": torch.float64}, call.bound, call.params)
    return bool(again.run({}) == "float64" != call.run({}))


def _entry(target: Target, facts: list[Facts]) -> dict[str, Any] | None:
    """All of an entry but what autocast does."""
    tensors, results = _relevant(target.name, facts, _tensor_names(facts))
    if results is None:
        return None
    entry: dict[str, Any] = {"params": list(_params(facts, tensors)), "tensors": tensors, **results}
    if any(f.call.variadic for f in facts):
        entry["variadic"] = entry["params"][-1]
    if any(_decided_by_dtype(f.call) for f in facts):
        entry["dtype_arg"] = "dtype"
    agreed = _agreed(facts)
    strict = {(a, b) for a, b in agreed if (b, a) in agreed}
    optional: dict[str, Any] = {
        "strict": _strict_groups(strict, tensors),
        "one_way": sorted([a, b] for a, b in agreed - strict),
        "strict_without": _strict_without(facts, tensors),
        "unsupported": target.unsupported,
    }
    return {**entry, **{key: value for key, value in optional.items() if value}}


def generate(only: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The whole table, or the named entries of it."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    targets, skipped = catalog((lambda name: name in only) if only else lambda _name: True)
    _progress(f"{len(targets)} callables with {sum(len(t.calls) for t in targets.values())} calls")
    measured: Measured = {}
    for name, target in targets.items():
        facts = [f for f in map(measure, target.calls) if f is not None]
        if facts:
            measured[name] = facts
        else:
            skipped["no two dtypes run on CPU"] += 1
    _progress("measured without autocast")
    policies = _policies(measured)
    history = {device: policies_of(device) for device in DEVICES}
    entries: dict[str, Any] = {}
    for name, facts in measured.items():
        entry = _entry(targets[name], facts)
        if entry is None:
            skipped["result follows no rule"] += 1
            _progress(f"{name}: result follows no rule")
            continue
        entry["policy"], since, split = _policy_entry(name, policies, history)
        if since:
            entry["since"] = since
        if split:
            _progress(f"{name}: calls disagree on the policy: {'; '.join(split)}")
        entries[name] = entry
    _progress(f"{len(entries)} entries; left out: {dict(skipped)}")
    version = torch.__version__.partition("+")[0]
    return {"torch": version, "generator": "python -m amplint.data.generate_ops", "ops": entries}


def main() -> None:
    """Write the table to the path given, else beside this file."""
    parser = argparse.ArgumentParser(description="Measure what torch operations do to dtypes.")
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).with_name("ops.json"))
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    options = parser.parse_args()
    dump(generate(frozenset(options.only)), options.out)


if __name__ == "__main__":
    main()
