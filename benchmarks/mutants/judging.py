"""What a mutant does, by running it beside the original."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.verify import judge
from amplint.verify.job import BASE, CPU_GAP, HARDWARE
from mutants.inputs import NUMBERS_ONLY, RANDOM
from mutants.originals import NO_GRADIENTS
from mutants.outcomes import BETWEEN, HARMLESS, INACCURATE, NONFINITE, RAISES, UNDECIDED
from mutants.running import WITH_GRADIENTS, became_nonfinite, distance, run

if TYPE_CHECKING:
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.verify.build import Recipe
    from amplint.verify.run import Where
    from mutants.inputs import Case
    from mutants.originals import Originals


OTHER_PROGRAM = 0.05
"""Relative distance in float32 beyond which a mutant computes something else, and is no matter of precision."""
FACTOR = 4.0
"""How many times the original's distance from float32 is still rounding."""
_STEPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
_ROUNDING = 8
"""Steps of the dtype up to which a distance is rounding, however exact the original is."""


@dataclass(frozen=True)
class Label:
    """What came of a mutant in a scenario. ``place`` is the failing line: file within the library's folder, and row;
    ``family`` the rule code of the error's text."""

    label: str
    variant: str = ""
    mode: str = ""
    error: str = ""
    family: str | None = None
    place: tuple[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        given = {"label": self.label, "variant": self.variant, "mode": self.mode, "error": self.error}
        data: dict[str, Any] = {name: value for name, value in given.items() if value}
        if self.family:
            data["family"] = self.family
        if self.place:
            data["place"] = list(self.place)
        return data


@dataclass(frozen=True)
class ThrownOut:
    """Why a mutant says nothing about precision."""

    why: str


def label(
    recipe: Recipe,
    known: Originals,
    where: Where,
    root: str,
    *,
    numeric: bool,
    inference: bool,
    scenarios: tuple[Scenario, ...] = DEFAULT_SCENARIOS,
) -> dict[str, Label] | ThrownOut:
    """Run a mutant, whose code is in place, in every scenario in which the original is clean.

    ``numeric``: where no input shows a difference, that decides nothing. ``inference``: autograd may refuse it.
    """
    usable: list[Case] = []
    for case, reference in known.references.items():
        if not numeric and case.variant in NUMBERS_ONLY:
            continue
        if not inference and case == NO_GRADIENTS:
            continue
        own = run(recipe, CONTROL, case, where)
        if own.error is not None:
            if (
                case.variant == RANDOM
                and case.call.mode in BASE
                and not (inference and case.call.mode in WITH_GRADIENTS)
            ):
                return ThrownOut("it fails in float32 too")
            continue
        apart = 0.0 if case.call.mode == "train" else distance(reference, own)
        if apart is not None and apart <= OTHER_PROGRAM and not became_nonfinite(reference, own):
            usable.append(case)
        elif case.variant == RANDOM and case.call.mode in BASE:
            return ThrownOut("it computes something else in float32")
    found = {}
    for scenario in scenarios:
        cases = [case for case in usable if case in known.clean.get(scenario.name, {})]
        if cases:
            made = _in_scenario(recipe, known, scenario, cases, where, root, numeric)
            if made is not None:
                found[scenario.name] = made
    return found or ThrownOut("no scenario is left")


def _in_scenario(
    recipe: Recipe, known: Originals, scenario: Scenario, cases: list[Case], where: Where, root: str, numeric: bool
) -> Label | None:
    """None where the CPU's kernels stop the run before anything is known."""
    worst: Label | None = None
    between = False
    step = _STEPS[scenario.autocast or scenario.parameters]
    for case in cases:
        original, rounding = known.clean[scenario.name][case]
        reference = known.references[case]
        ran = run(recipe, scenario, case, where)
        if ran.error is not None:
            verdict = judge.judge_error(ran.error, emulated=where.emulated)
            if verdict.kind in (CPU_GAP, HARDWARE) or isinstance(ran.error, MemoryError):
                return worst
            return Label(
                RAISES,
                case.variant,
                case.call.mode,
                (verdict.error or "")[:120],
                verdict.family,
                place(ran.error, root),
            )
        if worst is not None and worst.label == NONFINITE:
            continue
        if became_nonfinite(reference, ran) and not became_nonfinite(reference, original):
            worst = Label(NONFINITE, case.variant, case.call.mode)
        elif rounding is not None and worst is None:
            apart = distance(reference, ran)
            if apart is not None and apart > max(FACTOR * rounding, _ROUNDING * step):
                worst = Label(INACCURATE, case.variant, case.call.mode, f"{apart:.2g} for {rounding:.2g}")
            elif apart is not None and apart > 2 * (rounding + step):
                between = True
    if worst is not None:
        return worst
    if between:
        return Label(UNDECIDED, error=BETWEEN)
    return Label(UNDECIDED if numeric else HARMLESS)


def place(error: BaseException, root: str) -> tuple[str, int] | None:
    """The innermost line of the library on the way to an error; None where there is none, as in a backward pass."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(root) and frame.lineno is not None:
            return frame.filename[len(root) :].lstrip("/"), frame.lineno
    return None
