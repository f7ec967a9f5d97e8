"""In which scenarios an operand is low precision and how surely, and in which its operation is not reached."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from amplint.claims.conflicts import hindered
from amplint.claims.operands import dtype_of_tensor, is_stable, known_floating
from amplint.claims.suspect import Suspect
from amplint.infer.lattice.dtypes import bits_of, names_of
from amplint.infer.lattice.values import Limit
from amplint.judge import doubts
from amplint.judge.certainty import Standing, holding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from amplint.finding import Cause, Doubt
    from amplint.infer.state.facts import FileFacts, Use
    from amplint.infer.state.operand import Operand

_MAX_QUOTED = 40


class _HasLanes(Protocol):
    """What claims something of scenarios, by number, all equally sure."""

    @property
    def lanes(self) -> dict[int, Standing]: ...


class _OfOperand(_HasLanes, Protocol):
    """What claims something of an operand."""

    @property
    def use(self) -> Use: ...

    @property
    def operand(self) -> Operand: ...


Claim = TypeVar("Claim", bound=_HasLanes)
OfOperand = TypeVar("OfOperand", bound=_OfOperand)


def low_lanes(facts: FileFacts, use: Use, operand: Operand, fails: Callable[[int, int], bool]) -> dict[int, Standing]:
    """The judged scenarios in which every dtype that an operand can have fails, by number, and how that stands.

    ``fails`` takes the scenario's number and the bit of one dtype. Where a caller decides the dtype it is assumed only.
    """
    found, raised = {}, hindered(facts, use)
    for number, scenario in enumerate(facts.scenarios):
        lane = operand.value.dtypes[number]
        if scenario.name == "fp32" or not use.live >> number & 1 or not lane.known:
            continue
        if all(fails(number, bit) for bit in bits_of(lane.mask)):
            asked = {
                doubts.UNKNOWN_ON_A_PATH: operand.value.unsure,
                doubts.FAILS_BEFORE: scenario.name in raised,
            }
            found[number] = Standing(forced=not (lane.assumed or operand.value.maybe)).doubted(*holding(asked))
    return found


def follows_scenario(facts: FileFacts, use: Use) -> bool:
    """Whether what a caller passes there has the scenario's dtype: in a module's methods.

    Callers of an autograd Function cast for it, and a plain function may have nothing to do with any model.
    """
    return use.in_module and not in_autograd_function(facts, use)


def in_autograd_function(facts: FileFacts, use: Use) -> bool:
    """Whether an operation stands in the body of an autograd Function."""
    inside = (f.node for f in facts.autograd_functions)
    row = use.node.lineno
    return any(c.lineno <= row <= (c.end_lineno or row) for c in inside)


def claimed_lanes(
    facts: FileFacts, use: Use, operand: Operand, fails: Callable[[int, int], bool]
) -> dict[int, Standing]:
    """:func:`low_lanes`, doubted outside modules where only a caller decides the dtype."""
    lanes = low_lanes(facts, use, operand, fails)
    return lanes if follows_scenario(facts, use) else unproven_doubted(lanes, doubts.OUTSIDE_A_MODULE)


def doubted(lanes: dict[int, Standing], *held: Doubt) -> dict[int, Standing]:
    """The same scenarios, with doubts that hold in all of them."""
    return {number: standing.doubted(*held) for number, standing in lanes.items()} if held else lanes


def assumed(lanes: dict[int, Standing]) -> dict[int, Standing]:
    """The same scenarios, where the dtype alone forces nothing."""
    return {number: replace(standing, forced=False) for number, standing in lanes.items()}


def unproven_doubted(lanes: dict[int, Standing], doubt: Doubt) -> dict[int, Standing]:
    """The same scenarios, with a doubt about what is not proven."""
    return {number: each if each.proven else each.doubted(doubt) for number, each in lanes.items()}


def doubted_beside_modules(facts: FileFacts, use: Use, lanes: dict[int, Standing]) -> dict[int, Standing]:
    """The same scenarios, those under autocast doubted where no module of the file is seen to lead to the operation."""
    if not any(facts.scenarios[number].autocast for number in lanes) or facts.runs_in_a_module(use.node.lineno):
        return lanes
    beside = doubts.RUN_BESIDE_MODULES
    return {n: each.doubted(beside) if facts.scenarios[n].autocast else each for n, each in lanes.items()}


def surest(lanes: dict[int, Standing]) -> dict[int, Standing]:
    """The scenarios of which a claim is surest: these are what a finding names."""
    best = min((standing.rank for standing in lanes.values()), default=None)
    return {number: standing for number, standing in lanes.items() if standing.rank == best}


def strongest(found: Sequence[Claim]) -> tuple[Claim, list[int], Standing]:
    """Of what one node does in several contexts the surest, with the scenarios of all that are as sure."""
    worst = min(found, key=lambda claim: (next(iter(claim.lanes.values())).rank, -len(claim.lanes)))
    standing = next(iter(worst.lanes.values()))
    lanes = {number for claim in found for number, each in claim.lanes.items() if each.rank == standing.rank}
    return worst, sorted(lanes), standing


def suspect(facts: FileFacts, found: Sequence[OfOperand], message: Callable[[OfOperand, str], str]) -> Suspect:
    """The surest of what one node does; ``message`` takes that and the operand's dtype."""
    worst, lanes, standing = strongest(found)
    span, said = facts.span(worst.use.node), message(worst, dtype_name(worst.operand, lanes))
    causes = causes_of(facts, worst.operand, worst.lanes)
    return Suspect(span, span, said, facts.names(lanes), standing, causes, data=worst)


def by_node(uses: Iterable[Use]) -> Iterable[list[Use]]:
    """The uses of each node, which may run in several contexts."""
    found: dict[int, list[Use]] = {}
    for use in uses:
        found.setdefault(id(use.node), []).append(use)
    return found.values()


def causes_of(facts: FileFacts, operand: Operand, lanes: Iterable[int]) -> tuple[Cause, ...]:
    """What decided an operand's dtype in the first of the scenarios."""
    return facts.causes((operand,), next(iter(lanes)))


def dtype_name(operand: Operand, lanes: Iterable[int]) -> str:
    """``float16``, or ``float16 or bfloat16`` where the scenarios differ."""
    mask = 0
    for number in lanes:
        mask |= operand.value.dtypes[number].mask
    return " or ".join(names_of(mask))


def is_floating(operand: Operand) -> bool:
    """Whether a tensor is floating whatever callers pass: some scenario's dtype does not come from one."""
    assumed = all(lane.assumed for lane in operand.value.dtypes[1:])
    return known_floating(operand) and not operand.value.maybe and not assumed


def quoted(node: ast.expr | None, other: str) -> str:
    """The expression in backquotes, or a word for it where it is long."""
    text = ast.unparse(node) if node is not None else ""
    return f"`{text}`" if text and len(text) <= _MAX_QUOTED and "\n" not in text else other


def spelled_number(constant: ast.expr | None, number: float | Limit, other: str) -> str:
    """A constant as the code writes it, with its value where that is not what is written."""
    shown = quoted(constant, other)
    return shown if isinstance(number, Limit) or shown == f"`{number}`" else f"{shown} ({number:g})"


def dtype_expression(use: Use, operand: Operand) -> str | None:
    """An expression for the dtype of what an operation gets or makes; None where its own may not be evaluated again."""
    if operand.name != "result":
        return dtype_of_tensor(operand.node) if operand.node is not None else None
    given = use.nodes.get("dtype")
    if given is not None:
        return ast.unparse(given) if is_stable(given) else None
    like = use.nodes.get("self") or use.nodes.get("input")
    return dtype_of_tensor(like) if like is not None else None
