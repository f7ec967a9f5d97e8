"""What autocast does to a call, from outcomes with and without it and the listed operations that were reached."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch

from amplint.data._calls import Assignment, Failure, Operand, Outcome, name_of
from amplint.data._measure import FULL, Facts
from amplint.data._rules import Seen, Setting, evaluate, flatten
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.emulation.kernels import Log

SETTLED = {"fp32_set_opt_dtype", "fp32_append_dtype"}
AUTOCASTABLE = (torch.float16, torch.bfloat16, FULL)


@dataclass(frozen=True)
class Policy:
    """Effective policy of one call on one device, and the listed operations it came from."""

    kind: str
    operations: tuple[str, ...]


def policy_runs(facts: Facts) -> Iterator[tuple[str, Assignment]]:
    """All operands wide, all low, and one unlike the others."""
    names = list(facts.operands)
    yield "full", dict.fromkeys(names, FULL)
    yield "low", dict.fromkeys(names, facts.low)
    if len(names) > 1:
        for name in names:
            yield "mixed", {**dict.fromkeys(names, FULL), name: facts.low}
            yield "mixed", {**dict.fromkeys(names, facts.low), name: FULL}


def odd_runs(facts: Facts) -> Iterator[tuple[str, Assignment]]:
    """Operands for which policies are not made: integers, and the 16-bit dtype that autocast is not set to."""
    names = list(facts.operands)
    other = torch.float16 if facts.low is torch.bfloat16 else torch.bfloat16
    yield "integers", dict.fromkeys(names, torch.int64)
    yield "other", dict.fromkeys(names, other)
    for name in names if len(names) > 1 else ():
        yield "integers", {**dict.fromkeys(names, facts.low), name: torch.int64}
        yield "other", {**dict.fromkeys(names, FULL), name: other}


def autocast_outcomes(facts: Facts, device: str) -> list[Outcome]:
    """Outcomes of the policy runs under the autocast of a device (emulated) or the CPU."""
    with torch.autocast(device, dtype=facts.low):
        return plain_outcomes(facts)


def odd_outcomes(facts: Facts, device: str) -> list[Outcome]:
    """Outcomes of the odd runs under that autocast."""
    with torch.autocast(device, dtype=facts.low):
        return [facts.call.run(dtypes) for _, dtypes in odd_runs(facts)]


def plain_outcomes(facts: Facts) -> list[Outcome]:
    """Outcomes of the same runs as autocast stands."""
    return [facts.call.run(dtypes) for _, dtypes in policy_runs(facts)]


def policy(facts: Facts, plain: list[Outcome], cast: list[Outcome], log: Log) -> Policy | None:
    """Effective policy, from what autocast changed and which listed operations were reached."""
    operations = tuple(dict.fromkeys(name for name, _ in log))
    hit = {kind for _, kind in log}
    if not hit:
        return None
    if "banned" in hit and all(isinstance(outcome, Failure) for outcome in cast):
        return Policy("banned", operations)
    labels = [label for label, _ in policy_runs(facts)]
    full32 = "fp32_out" if hit <= SETTLED else "fp32"
    if plain == cast:
        return Policy("promote", operations) if hit == {"promote"} and _all_promoted(facts, operations) else None
    if len(operations) == 1:
        return Policy(full32 if hit <= SETTLED else hit.pop(), operations)
    if name_of(facts.low) in _changed(plain[0], cast[0]) or (isinstance(cast[0], Failure) and "lower" in hit):
        return Policy("lower", operations)
    if {"float32", "complex64"} & _changed(plain[1], cast[1]):
        return Policy(full32, operations)
    mixed = [pair for label, *pair in zip(labels, plain, cast, strict=True) if label == "mixed"]
    if any(isinstance(p, Failure) and not isinstance(c, Failure) for p, c in mixed):
        return next((Policy(kind, operations) for kind in ("lower", "promote", "fp32") if kind in hit), None)
    return None


def _all_promoted(facts: Facts, operations: tuple[str, ...]) -> bool:
    """Whether it is the call's own operands that the operations promote; many composites join parts with ``cat``."""
    lists = any(operand.part == "rest" for operand in facts.operands)
    joined = {name.partition(".")[0] for name in operations} & {"cat", "stack"}
    return len(facts.operands) > 1 and (lists or not joined)


def _changed(plain: Outcome, cast: Outcome) -> set[str]:
    """Dtypes that come out under autocast where others, or none, do without it."""
    if isinstance(cast, Failure):
        return set()
    if isinstance(plain, Failure):
        return set(flatten(cast))
    return {c for p, c in zip(flatten(plain), flatten(cast), strict=False) if p != c}


# ---- what a policy and a result rule predict --------------------------------------------------------------------


def cast_by(kind: str | None, dtypes: Assignment, low: torch.dtype) -> dict[Operand, torch.dtype]:
    """The dtypes that a kernel sees."""
    eligible = [dtype for dtype in dtypes.values() if dtype in AUTOCASTABLE]
    if kind in (None, "fp32_out") or not eligible:
        return dict(dtypes)
    assert kind is not None
    widest = FULL if FULL in eligible else eligible[0]
    target = {"lower": low, "fp32": FULL, "promote": widest}[kind]
    return {operand: target if dtype in AUTOCASTABLE else dtype for operand, dtype in dtypes.items()}


def predicted(
    kind: str | None, rule: Any, tensors: Sequence[str], dtypes: Assignment, setting: Setting, low: torch.dtype
) -> Any:
    """The outcome under autocast, None where the rule says nothing."""
    out = evaluate(rule, tensors, cast_by(kind, dtypes, low), setting)
    first = next((dtype for operand, dtype in dtypes.items() if tensors and operand.name == tensors[0]), None)
    if kind == "fp32_out" and first in AUTOCASTABLE and isinstance(out, str):
        return "float32"
    return out


def under_rule(seen: Sequence[Seen], tensors: Sequence[str], low: torch.dtype) -> Any:
    """The result of floating operands under autocast, as a rule on their dtypes before it casts; None if none fits.

    ``low`` is the dtype that autocast is set to; ``a|b`` where nothing in the dtypes tells which of two comes out.
    """
    if isinstance(seen[0][2], list):
        if any(not isinstance(out, list) or len(out) != len(seen[0][2]) for _, _, out in seen):
            return None
        parts = [under_rule([(d, s, out[i]) for d, s, out in seen], tensors, low) for i in range(len(seen[0][2]))]
        return None if None in parts else parts
    outcomes = {str(out).removeprefix("self:") for _, _, out in seen}
    if len(outcomes) == 1:
        only = outcomes.pop()
        return "low" if only == name_of(low) else only
    names = ("first", "promote", *tensors[1:])
    for name in names:
        if all(evaluate(name, tensors, dtypes, setting) in (None, out) for dtypes, setting, out in seen):
            return name
    for pair in itertools.combinations(("low", "float32", *names), 2):
        if all(
            out in (name_of(low) if name == "low" else evaluate(name, tensors, dtypes, setting) for name in pair)
            for dtypes, setting, out in seen
        ):
            return "|".join(pair)
    return None


def predicted_under(rule: Any, tensors: Sequence[str], dtypes: Assignment, setting: Setting, low: torch.dtype) -> Any:
    """The outcomes that a rule of :func:`under_rule` allows, None where it says nothing."""
    if isinstance(rule, list):
        return [predicted_under(part, tensors, dtypes, setting, low) for part in rule]
    if rule == "unknown":
        return None
    names = rule.split("|")
    return {name_of(low) if name == "low" else evaluate(name, tensors, dtypes, setting) for name in names}
