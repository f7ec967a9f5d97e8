"""What a training loop makes of the parameters, and what a mutant of it does otherwise."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from amplint.verify.coverage import Coverage
from amplint.verify.judge import judge_error
from mutants.judging import Label, ThrownOut, place
from mutants.outcomes import BETWEEN, HARMLESS, INACCURATE, NONFINITE, RAISES, UNDECIDED
from mutants.training.setting import VARIANTS, in_float32, setting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mutants.training.loops import Loop

SCENARIO = "autocast-fp16"
"""Loops open their own region, with float16 and a scaler."""
CLOSE, FACTOR = 0.05, 4.0
"""Relative distance of the change of all parameters that is still rounding, and how many times the original's is."""


@dataclass(frozen=True)
class Trained:
    """How all parameters changed, or the error."""

    change: torch.Tensor | None = None
    error: BaseException | None = None

    @property
    def finite(self) -> bool:
        return self.change is not None and bool(torch.isfinite(self.change).all())


@dataclass
class Known:
    """By variant: float32's change, and the distance of the loop's own from it. ``rows`` that ran, by file."""

    references: dict[str, Trained] = field(default_factory=dict)
    distances: dict[str, float] = field(default_factory=dict)
    rows: dict[str, frozenset[int]] = field(default_factory=dict)


def train(loop: Loop, variant: str, *, mixed: bool) -> Trained:
    """Run a loop, in its own precision or in float32. To be called inside of cuda's policy."""
    made = setting(variant, mixed=mixed)
    before = [p.detach().clone() for p in made.model.parameters()]
    try:
        with contextlib.nullcontext() if mixed else in_float32():
            loop.run(made)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Trained(error=error)
    pairs = zip(made.model.parameters(), before, strict=True)
    return Trained(torch.cat([(after.detach().float() - start).flatten() for after, start in pairs]))


def originals(loop: Loop, files: Iterable[str]) -> Known:
    """The unbroken loop; without variants where it does not come close to float32."""
    files = list(files)
    known = Known()
    coverage = Coverage(files)
    for variant in VARIANTS:
        reference = train(loop, variant, mixed=False)
        with coverage:
            ran = train(loop, variant, mixed=True)
        apart = _distance(reference, ran)
        if apart is not None and apart <= CLOSE:
            known.references[variant] = reference
            known.distances[variant] = apart
    known.rows = {file: coverage.lines(file) for file in files if coverage.lines(file)}
    return known


def label(loop: Loop, known: Known, root: str, *, numeric: bool) -> dict[str, Label] | ThrownOut:
    """Run a mutant, whose code is in place."""
    between = False
    worst: Label | None = None
    for variant, reference in known.references.items():
        control = train(loop, variant, mixed=False)
        if control.error is not None:
            return ThrownOut("it fails in float32 too")
        apart = _distance(reference, control)
        if apart is None or apart > CLOSE:
            return ThrownOut("it computes something else in float32")
        ran = train(loop, variant, mixed=True)
        if ran.error is not None:
            verdict = judge_error(ran.error, emulated="cuda")
            error = (verdict.error or "")[:120]
            return {SCENARIO: Label(RAISES, variant, "train", error, verdict.family, place(ran.error, root))}
        apart = _distance(reference, ran)
        if not ran.finite:
            worst = Label(NONFINITE, variant, "train")
        elif apart is not None and apart > max(CLOSE, FACTOR * known.distances[variant]):
            worst = worst or Label(INACCURATE, variant, "train", f"{apart:.2g} for {known.distances[variant]:.2g}")
        elif apart is not None and apart > 2 * known.distances[variant] + 1e-3:
            between = True
    if worst is None and between:
        return {SCENARIO: Label(UNDECIDED, error=BETWEEN)}
    return {SCENARIO: worst or Label(UNDECIDED if numeric else HARMLESS)}


def _distance(reference: Trained, other: Trained) -> float | None:
    """The relative L2 distance of two changes; None where one is none or not finite."""
    if reference.change is None or other.change is None or not (reference.finite and other.finite):
        return None
    return float((other.change - reference.change).norm() / reference.change.norm())
