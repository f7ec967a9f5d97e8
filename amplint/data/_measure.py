"""What a call does to dtypes, found by running it in many combinations of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from amplint.data._calls import Assignment, Call, Failure, Operand, Outcome

if TYPE_CHECKING:
    from amplint.emulation.kernels import Log

FULL = torch.float32
#: (wide, narrow) in order of preference; the last serves operations with no low-precision CPU kernel.
PAIRS = ((FULL, torch.bfloat16), (FULL, torch.float16), (torch.float64, FULL))
#: Up to this many operands, every split into wide and narrow ones is run; beyond it, splits of one or two.
EXHAUSTIVE = 4

Split = frozenset[Operand]


class Observation(NamedTuple):
    """One successful run."""

    dtypes: Assignment
    outcome: Outcome


@dataclass(eq=False)
class Facts:
    """What one call does without autocast."""

    call: Call
    operands: dict[Operand, int]
    pair: tuple[torch.dtype, torch.dtype]
    floating: bool
    observations: list[Observation] = field(default_factory=list)
    strict: set[tuple[Operand, Operand]] = field(default_factory=set)
    one_way: set[tuple[Operand, Operand]] = field(default_factory=set)


def _uniform(operands: Iterable[Operand], dtype: torch.dtype) -> dict[Operand, torch.dtype]:
    return dict.fromkeys(operands, dtype)


def _splits(operands: Sequence[Operand]) -> list[Split]:
    """Sets of operands to make narrow while the others stay wide."""
    count = len(operands)
    sizes = range(1, count) if count <= EXHAUSTIVE else sorted({1, 2, count - 1})
    return [frozenset(chosen) for size in sizes for chosen in itertools.combinations(operands, size)]


def _disagreements(operands: Sequence[Operand], failed: dict[Split, bool]) -> Iterator[tuple[Operand, Operand]]:
    """(wide, narrow) pairs for which every split that separates them so raises."""
    for wide, narrow in itertools.permutations(operands, 2):
        separating = [bad for split, bad in failed.items() if narrow in split and wide not in split]
        if separating and all(separating):
            yield wide, narrow


def measure(call: Call) -> Facts | None:
    """Run without autocast; None where no pair of dtypes works."""
    operands = call.operands("floating")
    if not operands:
        return _measure_others(call)
    names = list(operands)
    for wide, narrow in PAIRS:
        outcomes = [(dtypes, call.run(dtypes)) for dtypes in (_uniform(names, wide), _uniform(names, narrow))]
        if not any(isinstance(outcome, Failure) for _, outcome in outcomes):
            break
    else:
        return None
    facts = Facts(call, operands, (wide, narrow), True, [Observation(*pair) for pair in outcomes])
    failed: dict[Split, bool] = {}
    for split in _splits(names):
        dtypes = {name: narrow if name in split else wide for name in names}
        outcome = call.run(dtypes)
        failed[split] = isinstance(outcome, Failure)
        if not failed[split]:
            facts.observations.append(Observation(dtypes, outcome))
    directed = set(_disagreements(names, failed))
    facts.strict = {(a, b) for a, b in directed if (b, a) in directed}
    facts.one_way = directed - facts.strict
    for dtype in (torch.float16, torch.float64, torch.int32, torch.complex64):
        _observe(facts, _uniform(names, dtype))
    return facts


def _observe(facts: Facts, dtypes: Assignment) -> None:
    outcome = facts.call.run(dtypes)
    if not isinstance(outcome, Failure):
        facts.observations.append(Observation(dtypes, outcome))


def _measure_others(call: Call) -> Facts:
    """Calls with no floating operand: complex operands, else integer ones, in each dtype that works, and two mixed."""
    category = "complex" if call.operands("complex") else "integer"
    operands = call.operands(category)
    facts = Facts(call, operands, PAIRS[0], False, [])
    dtypes = (torch.complex64, torch.complex128) if category == "complex" else (torch.int64, torch.int32, torch.bool)
    for dtype in dtypes:
        _observe(facts, _uniform(operands, dtype))
    for operand in operands if len(operands) > 1 else ():
        _observe(facts, {**_uniform(operands, dtypes[0]), operand: dtypes[1]})
    if not facts.observations:
        facts.observations.append(Observation({}, call.run({})))
    return facts


# ---- the result as a function of the operands -------------------------------------------------------------------

Rule = Callable[[Assignment, dict[Operand, int]], "torch.dtype | None"]


def _promoted(dtypes: Assignment, dims: dict[Operand, int]) -> torch.dtype:
    """torch.result_type of the operands; tensors without dimensions do not count beside ones that have some."""
    dimensioned = [dtype for operand, dtype in dtypes.items() if dims.get(operand)]
    chosen = dimensioned or list(dtypes.values())
    result = chosen[0]
    for dtype in chosen[1:]:
        result = torch.promote_types(result, dtype)
    return result


def _floated(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def _summed(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _param_rule(param: str) -> Rule:
    def rule(dtypes: Assignment, dims: dict[Operand, int]) -> torch.dtype | None:
        found = [dtype for operand, dtype in dtypes.items() if operand.name == param and operand.part != "rest"]
        return found[0] if found else None

    return rule


def _rules(tensors: Sequence[str]) -> Iterator[tuple[str, Rule]]:
    """Candidate rules, the plainest first."""
    if tensors:
        yield "first", _param_rule(tensors[0])
    yield "promote", _promoted
    yield "float", lambda dtypes, dims: _floated(_promoted(dtypes, dims))
    yield "sum", lambda dtypes, dims: _summed(_promoted(dtypes, dims))
    yield "real", lambda dtypes, dims: _promoted(dtypes, dims).to_real()
    yield "real", lambda dtypes, dims: _floated(_promoted(dtypes, dims)).to_real()
    yield "complex", lambda dtypes, dims: _floated(_promoted(dtypes, dims)).to_complex()
    for param in tensors[1:]:
        yield param, _param_rule(param)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


Seen = tuple[Assignment, dict[Operand, int], Any]


def _single_rule(seen: Sequence[Seen], tensors: Sequence[str]) -> str | None:
    """The plainest rule that explains the dtype of one output in every run."""
    outcomes = {outcome for _, _, outcome in seen}
    varied = len({tuple(sorted(map(str, dtypes.values()))) for dtypes, _, _ in seen}) > 1
    if len(outcomes) == 1 and (varied or not tensors or outcomes == {"none"}):
        return str(outcomes.pop())
    for name, rule in _rules(tensors):
        expected = [(rule(dtypes, dims), outcome) for dtypes, dims, outcome in seen if dtypes]
        known = [(dtype, outcome) for dtype, outcome in expected if dtype is not None]
        if known and all(_name(dtype) == outcome for dtype, outcome in known):
            return name
    return None


def result_rule(seen: Sequence[Seen], tensors: Sequence[str], variable: bool) -> Any:
    """Result rule of calls of one shape: a name, a list of them, or ``…*`` for a list of unfixed length.

    None if none fits.  Where no rule explains runs on complex or integer operands too, those are left aside.
    """
    if all(isinstance(outcome, str) and outcome.startswith("self:") for _, _, outcome in seen):
        return "self"
    for category in ("everything", "real", "floating"):
        kept = [run for run in seen if _in_category(run[0], category)]
        found = _shaped_rule(kept, tensors, variable) if kept else None
        if found is not None:
            return found
    return None


def _in_category(dtypes: Assignment, category: str) -> bool:
    if category == "everything":
        return True
    return all(d.is_floating_point or (category == "real" and not d.is_complex) for d in dtypes.values())


def _shaped_rule(seen: Sequence[Seen], tensors: Sequence[str], variable: bool) -> Any:
    if not isinstance(seen[0][2], list):
        return _single_rule(seen, tensors)
    if variable:
        flat = [(dtypes, dims, item) for dtypes, dims, out in seen for item in flatten(out)]
        rule = _single_rule(flat, tensors)
        return None if rule is None else rule + "*"
    rules = []
    for position in range(len(seen[0][2])):
        part = [(dtypes, dims, out[position]) for dtypes, dims, out in seen]
        rules.append(_shaped_rule(part, tensors, variable))
    return None if None in rules else rules


def flatten(outcome: Outcome) -> list[str]:
    """Dtype names of all outputs."""
    if isinstance(outcome, list):
        return [name for item in outcome for name in flatten(item)]
    return [str(outcome).removeprefix("self:")]


def shape_of(outcome: Outcome) -> str:
    """Results of the same shape can share a rule."""
    if isinstance(outcome, list):
        return "[" + ",".join(shape_of(item) for item in outcome) + "]"
    if outcome == "none":
        return "none"
    return "self" if outcome.startswith("self:") else "tensor"


# ---- under autocast ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """Effective policy of one call on one device, and the listed operations it came from."""

    kind: str
    operations: tuple[str, ...]


def _policy_runs(facts: Facts) -> Iterator[tuple[str, Assignment]]:
    low = facts.pair[1] if facts.pair[0] is FULL else torch.bfloat16
    names = list(facts.operands)
    yield "full", _uniform(names, FULL)
    yield "low", _uniform(names, low)
    if len(names) > 1:
        for name in names:
            yield "mixed", {**_uniform(names, FULL), name: low}
            yield "mixed", {**_uniform(names, low), name: FULL}


def autocast_outcomes(facts: Facts) -> list[Outcome]:
    """Outcomes of the policy runs under the autocast that is installed for the CPU key."""
    low = facts.pair[1] if facts.pair[0] is FULL else torch.bfloat16
    with torch.autocast("cpu", dtype=low):
        return [facts.call.run(dtypes) for _, dtypes in _policy_runs(facts)]


def plain_outcomes(facts: Facts) -> list[Outcome]:
    """Outcomes of the same runs without autocast."""
    return [facts.call.run(dtypes) for _, dtypes in _policy_runs(facts)]


def policy(facts: Facts, plain: list[Outcome], cast: list[Outcome], log: Log) -> Policy | None:
    """Effective policy, from what autocast changed and which listed operations were reached."""
    operations = tuple(dict.fromkeys(name for name, _ in log))
    hit = {kind for _, kind in log}
    if not hit:
        return None
    if "banned" in hit and all(isinstance(outcome, Failure) for outcome in cast):
        return Policy("banned", operations)
    low = _name(facts.pair[1] if facts.pair[0] is FULL else torch.bfloat16)
    labels = [label for label, _ in _policy_runs(facts)]
    settled = {"fp32_set_opt_dtype", "fp32_append_dtype"}
    full32 = "fp32_out" if hit <= settled else "fp32"
    if plain == cast:
        return Policy("promote", operations) if hit == {"promote"} and _all_promoted(facts, operations) else None
    if len(operations) == 1:
        return Policy(full32 if hit <= settled else hit.pop(), operations)
    if low in _changed(plain[0], cast[0]) or (isinstance(cast[0], Failure) and "lower" in hit):
        return Policy("lower", operations)
    if "float32" in _changed(plain[1], cast[1]):
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
