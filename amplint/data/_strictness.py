"""Which operands must agree: parameters that make torch raise where their dtypes differ."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplint.data._measure import Facts

#: Share of the calls with both operands that must raise for a pair to count as strict; rare argument values (a
#: convolution with ``padding="valid"``, say) take another path.
AGREEMENT = 0.75


def _votes(facts: list[Facts]) -> dict[tuple[str, str], list[tuple[Facts, bool]]]:
    """(call, raises) by (wide, narrow) pair; calls with a tensor of no dimensions count where there are no others.

    A list raises where one of its tensors does: they mostly have one dtype.
    """
    votes: dict[tuple[str, str], dict[int, tuple[bool, Facts, bool]]] = {}
    for number, fact in enumerate(fact for fact in facts if fact.floating):
        for a, b in itertools.permutations(fact.operands, 2):
            dimensioned = bool(fact.operands[a] and fact.operands[b])
            raises = (a, b) in fact.strict or (a, b) in fact.one_way
            cast = votes.setdefault((a.name, b.name), {})
            before = cast.get(number, (dimensioned, fact, raises))
            cast[number] = (dimensioned or before[0], fact, raises or before[2])
    counted = {pair: [v for v in cast.values() if v[0]] or [*cast.values()] for pair, cast in votes.items()}
    return {pair: [(fact, raises) for _, fact, raises in cast] for pair, cast in counted.items()}


def agreed_pairs(facts: list[Facts]) -> set[tuple[str, str]]:
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


def bare(facts: list[Facts], strict: set[tuple[str, str]]) -> list[str]:
    """Parameters of strict pairs that may have another dtype where they have no dimensions and the other has some."""
    votes: dict[str, list[bool]] = {}
    for fact in (fact for fact in facts if fact.floating):
        for a, b in itertools.permutations(fact.operands, 2):
            if (a.name, b.name) in strict and not fact.operands[a] and fact.operands[b]:
                votes.setdefault(a.name, []).append((a, b) in fact.strict or (b, a) in fact.strict)
    return sorted(name for name, raised in votes.items() if not any(raised))


def strict_without(facts: list[Facts], tensors: list[str]) -> dict[str, list[list[str]]]:
    """Groups that must agree only where a certain other parameter holds no floating tensor (a soft target, say)."""
    found = sorted(_conditional(facts).items())
    both = {param: {(a, b) for a, b in pairs if (b, a) in pairs} for param, pairs in found}
    return {param: strict_groups(pairs, tensors) for param, pairs in both.items() if pairs}


def strict_groups(pairs: set[tuple[str, str]], tensors: list[str]) -> list[list[str]]:
    """Connected parameters; a list whose own items must agree is a group even alone."""
    groups: list[set[str]] = []
    for pair in sorted(pairs):
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching] + [set(pair).union(*touching)]
    return sorted([sorted(group, key=tensors.index) for group in groups], key=lambda g: tensors.index(g[0]))
