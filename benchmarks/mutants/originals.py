"""What the unbroken code gives: in float32, and in each scenario where it runs clean."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.verify.coverage import Coverage
from amplint.verify.modes import Call, calls
from mutants.inputs import INNER, LONG, MASKED, NUMBERS_ONLY, RANDOM, VARIANTS, Case, differs, varied
from mutants.running import became_nonfinite, distance, run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from amplint.infer.lattice.scenarios import Scenario
    from amplint.verify.build import Deadline, Recipe
    from amplint.verify.run import Run, Where

CLEAN = 0.1
"""Relative distance from float32 beyond which the original itself is not accurate in a scenario."""
SLOW, TOO_SLOW = 0.04, 0.12
"""CPU seconds of a run beyond which only random inputs are tried, and beyond which nothing is."""
NO_GRADIENTS = Case(RANDOM, Call("eval-no-grad"))


@dataclass
class Originals:
    """``references`` by case; ``clean`` by scenario: the runs of its cases and their distance from float32, None where
    that says nothing, as under dropout. ``rows`` of each file ran in float32, ``clean_rows`` in a scenario."""

    references: dict[Case, Run] = field(default_factory=dict)
    clean: dict[str, dict[Case, tuple[Run, float | None]]] = field(default_factory=dict)
    rows: dict[str, frozenset[int]] = field(default_factory=dict)
    clean_rows: dict[str, dict[str, frozenset[int]]] = field(default_factory=dict)

    @property
    def cases(self) -> list[str]:
        """The names of the cases."""
        return [str(case) for case in self.references]

    def only(self, cases: Collection[str]) -> Originals:
        """The same with no other cases than these, or all where none is named."""
        if not cases:
            return self
        return replace(self, references={c: ran for c, ran in self.references.items() if str(c) in cases})


def originals(
    recipe: Recipe,
    where: Where,
    files: Iterable[str],
    deadline: Deadline,
    *,
    numeric: bool = True,
    scenarios: tuple[Scenario, ...] = DEFAULT_SCENARIOS,
) -> Originals:
    """Run the original in every scenario, and with ``numeric`` on inputs of other values and lengths too.

    Nothing is clean where float32 fails.
    """
    files = list(files)
    found = Originals()
    base = [made for mode in ("train", "eval") if (made := _reference(found, recipe, mode, where)) is not None]
    if not base:
        return found
    start = time.process_time()
    for case in base:
        run(recipe, CONTROL, case, where)
    seconds = (time.process_time() - start) / len(base)
    if seconds > TOO_SLOW:
        return found
    coverage = Coverage(files)
    with coverage:
        for case in base:
            run(recipe, CONTROL, case, where)
    found.rows = {file: coverage.lines(file) for file in files if coverage.lines(file)}
    for case in [NO_GRADIENTS, *([] if seconds > SLOW else _others(recipe, base[-1], numeric))]:
        reference = run(recipe, CONTROL, case, where)
        if reference.error is None:
            found.references[case] = reference
        if deadline.left() <= 0:
            break
    for scenario in scenarios:
        _judge(found, recipe, scenario, base, where, list(found.rows))
        if deadline.left() <= 0:
            break
    return found


def _reference(found: Originals, recipe: Recipe, mode: str, where: Where) -> Case | None:
    for call in calls(mode, recipe.make()):
        case = Case(RANDOM, call)
        reference = run(recipe, CONTROL, case, where)
        if reference.error is None and reference.outputs:
            found.references[case] = reference
            return case
    return None


def _others(recipe: Recipe, base: Case, numeric: bool) -> list[Case]:
    """The other variants in the last of the base modes, and a call with a mask where one is taken."""
    wanted = [variant for variant in VARIANTS[1:] if numeric or variant not in NUMBERS_ONLY]
    cases = [Case(v, base.call) for v in wanted if v == INNER or differs(recipe, v)]
    masked = next(iter(calls("eval-mask", recipe.make())), None)
    if masked is not None:
        cases += [Case(RANDOM, masked)]
        if any(case.variant == LONG for case in cases):
            longer = next(iter(calls("eval-mask", varied(recipe, LONG).make())), None)
            cases += [Case(LONG, longer)] if longer is not None else []
    return [case for case in cases if case.variant != MASKED or base.call.mode == "eval"]


def _judge(
    found: Originals, recipe: Recipe, scenario: Scenario, base: list[Case], where: Where, files: list[str]
) -> None:
    clean: dict[Case, tuple[Run, float | None]] = {}
    coverage = Coverage(files)
    for case, reference in found.references.items():
        if case.variant == INNER and scenario.autocast is None:
            continue
        if case in base:
            with coverage:
                ran = run(recipe, scenario, case, where)
        else:
            ran = run(recipe, scenario, case, where)
        good = ran.error is None and not became_nonfinite(reference, ran)
        apart = distance(reference, ran) if good and case.call.mode != "train" else None
        if apart is not None and apart > CLEAN:
            good = False
        if good:
            clean[case] = ran, apart
        elif case in base:
            return
    found.clean[scenario.name] = clean
    found.clean_rows[scenario.name] = {file: coverage.lines(file) for file in files if coverage.lines(file)}
