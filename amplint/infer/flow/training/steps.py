"""What a training step does to gradients: the events, and what has happened by the time of each."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    import ast

    from amplint.infer.flow.training.program import Place, Scope

Assumed = frozenset[tuple[str, bool]]
"""Tests by their text, each with how it came out."""


class Step(str, Enum):
    """An event of a training step."""

    BACKWARD = "backward"
    AUTOGRAD_GRAD = "torch.autograd.grad"
    CLIP = "clipping of gradients"
    NORM = "norm of gradients"
    MANAGED_CLIP = "clipping by what also unscales"
    UNSCALE = "scaler.unscale_"
    SCALER_STEP = "scaler.step"
    UPDATE = "scaler.update"
    OPTIMIZER_STEP = "optimizer.step"
    ZERO_GRAD = "zero_grad"
    HANDED = "a scaler is handed to other code"


class Gradients(str, Enum):
    """What the gradients are at one point of one path."""

    ENTRY = "whatever the caller left"
    NONE = "none, or used up"
    PLAIN = "those of the loss itself"
    SCALED = "those of the scaled loss"
    UNSCALED = "divided by the scale again, perhaps by other code that got the scaler"
    MANAGED = "those of a loss that Accelerate or Fabric may have scaled"


@dataclass(frozen=True, slots=True)
class State:
    """One path's state. ``unscaled`` and ``stepped`` are (scaler, optimizer) since the scaler's last update, with the
    call that did it; ``updated`` holds scalers whose last call was an update; ``steps``: what has
    stepped since the last update, a scaler or an optimizer by itself; ``early_clips`` are clippings of what the
    caller left, before any unscaling; ``assumed`` the tests that led here."""

    gradients: Gradients = Gradients.ENTRY
    unscaled: frozenset[tuple[Place, Place]] = frozenset()
    stepped: frozenset[tuple[Place, Place]] = frozenset()
    updated: frozenset[Place] = frozenset()
    steps: frozenset[Step] = frozenset()
    early_clips: frozenset[int] = frozenset()
    assumed: Assumed = frozenset()

    def after(self, event: Event) -> tuple[State, ...]:
        """The states that an event leaves: two where a loss is scaled or not."""
        step, scaler, pair = event.step, event.scaler, event.pair
        used = replace(self, early_clips=frozenset())
        if step is Step.BACKWARD:
            return tuple(replace(used, gradients=kind) for kind in event.gradients)
        if step is Step.CLIP and self.gradients is Gradients.ENTRY:
            return (replace(self, early_clips=self.early_clips | {id(event.node)}),)
        if step is Step.MANAGED_CLIP:
            return (replace(self, gradients=Gradients.UNSCALED),)
        if step is Step.OPTIMIZER_STEP:
            return (replace(used, gradients=Gradients.NONE, steps=self.steps | {step}),)
        if step is Step.ZERO_GRAD:
            return (replace(used, gradients=Gradients.NONE),)
        if scaler is None:
            return (self,)
        idle = self.updated - {scaler}
        if step is Step.HANDED:
            unscaled, stepped = self._without(scaler)
            left = Gradients.UNSCALED if self.gradients is Gradients.SCALED else self.gradients
            return (replace(used, gradients=left, unscaled=unscaled, stepped=stepped, updated=idle, steps=frozenset()),)
        if step is Step.UNSCALE:
            left = self.gradients if self.gradients is Gradients.PLAIN else Gradients.UNSCALED
            return (replace(used, gradients=left, unscaled=self.unscaled | pair, updated=idle),)
        if step is Step.SCALER_STEP:
            stepped, steps = self.stepped | pair, self.steps | {step}
            return (replace(used, gradients=Gradients.NONE, stepped=stepped, updated=idle, steps=steps),)
        if step is Step.UPDATE:
            unscaled, stepped = self._without(scaler)
            updated = idle if event.sets_scale else self.updated | {scaler}
            return (replace(self, unscaled=unscaled, stepped=stepped, updated=updated, steps=frozenset()),)
        return (self,)

    def _without(self, scaler: Place) -> tuple[frozenset[tuple[Place, Place]], frozenset[tuple[Place, Place]]]:
        """``unscaled`` and ``stepped`` by other scalers than one."""
        unscaled, stepped = (
            frozenset(pair for pair in pairs if pair[0] != scaler) for pairs in (self.unscaled, self.stepped)
        )
        return unscaled, stepped


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One event as written: the call, and the scaler and optimizer that it names."""

    step: Step
    node: ast.Call
    scope: Scope
    scaler: Place | None = None
    optimizer: Place | None = None
    gradients: tuple[Gradients, ...] = ()

    @property
    def sets_scale(self) -> bool:
        """Whether an update is given a new scale, for which no step is needed."""
        return self.step is Step.UPDATE and bool(self.node.args or self.node.keywords)

    @property
    def pair(self) -> frozenset[tuple[Place, Place]]:
        """The scaler with the optimizer, where these are one object each: not an item of a list under any index."""
        if self.scaler is None or self.optimizer is None:
            return frozenset()
        several = any(isinstance(part, str) and "*" in part for part in (*self.scaler, *self.optimizer))
        return frozenset() if several else frozenset({(self.scaler, self.optimizer)})


@dataclass(frozen=True, slots=True)
class Around:
    """An autocast region around an event: the expression entered, and whether it is surely one."""

    node: ast.expr
    certain: bool


@dataclass(slots=True, eq=False)
class Moment:
    """An event with every state in which it is reached, and the autocast regions around it, by context.

    ``regions`` has one entry a context: the innermost enabled autocast region, or None where none is around.
    ``blurred``: more paths lead here than were told apart, so ``states`` may hold combinations that do not occur.
    """

    event: Event
    states: set[State]
    regions: list[Around | None]
    blurred: bool = False
    loops: tuple[ast.AST, ...] = ()
    tests: tuple[ast.expr, ...] = ()
    """The tests in the same function, outermost first, under which it runs."""

    @property
    def gradients(self) -> set[Gradients]:
        return {state.gradients for state in self.states}
