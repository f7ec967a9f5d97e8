"""Other ways to build and call a class, where options decide which of its lines run."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass
from amplint.verify.build.found import FoundRecipe
from amplint.verify.build.guards import FALSE, NONE, TRUE, Sources, Wish
from amplint.verify.build.inputs import tensor_like
from amplint.verify.build.owners import INSIDE, inside_owner
from amplint.verify.build.signatures import VARIADIC, Parameter
from amplint.verify.build.spec import Const, Plan, Spec, plan_key
from amplint.verify.build.synthesis import HOW, confirmed
from amplint.verify.described import value_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.verify.build.effort import Deadline
    from amplint.verify.build.found import Found
    from amplint.verify.build.recipe import Recipe

MOST = 4
"""Variants of options besides what is built first."""
SECONDS = 8.0
"""How long each is searched for."""
_MOST_TRIED = 12
_TRIES = 24


@dataclass(frozen=True)
class Variant:
    """Another recipe for a target; ``label`` says how it differs. ``whole``: it makes a class that owns the target."""

    label: str
    recipe: Recipe
    whole: bool = False


@dataclass(frozen=True)
class _Change:
    """Other values for parameters of the constructor and of the forward."""

    plan: Plan
    inputs: Plan

    @property
    def key(self) -> str:
        return f"{plan_key(self.plan)}|{plan_key(self.inputs)}"

    @property
    def label(self) -> str:
        made = [f"{name}={_text(spec)}" for name, spec in self.plan.items()]
        given = [f"{n}={_text(s)}" if isinstance(s, Const) else f"{n} passed" for n, s in self.inputs.items()]
        return ", ".join([*made, *given])


def variants(
    recipe: Recipe, lines: Iterable[tuple[str, int]], deadline: Deadline, *, only: Iterable[str] | None = None
) -> Iterator[Variant]:
    """Variants of a synthesised recipe that run: those that options on the way to ``lines`` (file and row) ask for,
    one with every optional tensor, those of other options that the class tests, and one inside a class that owns it.

    ``only`` keeps those with these labels. Nothing where a user wrote the recipe.
    """
    if not isinstance(recipe, FoundRecipe):
        return
    found = recipe.found
    made = 0
    changes = (change for change in _changes(found, lines) if only is None or change.label in only)
    for change in itertools.islice(changes, _MOST_TRIED):
        if made == MOST or deadline.left() <= 0:
            break
        changed = _changed(found, change, deadline.sooner(SECONDS))
        if changed is not None and confirmed(variant := changed.recipe(HOW)):
            made += 1
            yield Variant(change.label, variant)
    target, seed = found.search.target, found.search.seed
    if only is not None and not any(label.startswith(INSIDE) for label in only):
        return
    whole = inside_owner(target, seed, deadline.sooner(2 * SECONDS))
    if whole is not None:
        yield Variant(whole[0], whole[1], whole=True)


def _changes(found: Found, lines: Iterable[tuple[str, int]]) -> Iterator[_Change]:
    sources = Sources.of(found.search.target)
    seen = {""}

    def new(change: _Change) -> bool:
        fresh = change.key not in seen and bool(change.plan or change.inputs)
        seen.add(change.key)
        return fresh

    for file, row in lines:
        change = _granting(found, sources, sources.around(file, row))
        if new(change):
            yield change
    optional = _optional_tensors(found, sources)
    if new(every := _Change({}, optional)):
        yield every
    for wish in sources.tested():
        change = _granting(found, sources, [wish])
        if new(change):
            yield change
    for name, spec in optional.items():
        if new(single := _Change({}, {name: spec})):
            yield single


def _granting(found: Found, sources: Sources, wishes: list[Wish]) -> _Change:
    """The values that grant the wishes which those at hand do not."""
    plan: Plan = {}
    inputs: Plan = {}
    for wish in wishes:
        if not wish.attribute and wish.name in found.forward.parameters:
            spec = _granted(
                wish, found.inputs.get(wish.name), found.forward.parameters[wish.name], _inputs(found, wish)
            )
            if spec is not None:
                inputs[wish.name] = spec
            continue
        for name in sources.made_from(wish.name) if wish.attribute else [wish.name]:
            parameter = found.search.parameters.get(name)
            if parameter is not None and parameter.kind not in VARIADIC:
                spec = _granted(wish, found.plan.get(name), parameter, found.search.choices(name))
                if spec is not None:
                    plan[name] = spec
                break
    return _Change(plan, inputs)


def _inputs(found: Found, wish: Wish) -> list[Spec]:
    return found.forward.choices(found.inputs, wish.name)


def _granted(wish: Wish, spec: Spec | None, parameter: Parameter, choices: list[Spec]) -> Spec | None:
    """A value that is what was asked for; None where the one at hand is, or none is known."""
    if spec is not None and not isinstance(spec, Const):
        return Const(None) if wish.wanted in (NONE, FALSE) and parameter.default is None else None
    value = parameter.default if spec is None else spec.value
    if value is Parameter.empty or wish.granted_by(value):
        return None
    if wish.wanted not in (TRUE, FALSE, NONE) and wish.value is not None:
        return Const(wish.value)
    if isinstance(value, bool):
        return Const(not value)
    if wish.wanted == NONE:
        return Const(None) if parameter.default is None else None
    plain: list[Any] = [other for other in choices if not isinstance(other, Const) or wish.granted_by(other.value)]
    return plain[0] if plain else None


def _optional_tensors(found: Found, sources: Sources) -> Plan:
    """The optional tensors that the call does not give, each with the likeliest tensor."""
    given: Plan = {}
    for name, parameter in found.forward.parameters.items():
        absent = name not in found.inputs or _is_none(found.inputs[name])
        if parameter.default is None and absent and _is_tensor(name, parameter, sources):
            specs = [spec for spec in found.forward.choices(found.inputs, name) if not isinstance(spec, Const)]
            if specs:
                given[name] = specs[0]
    return given


def _is_tensor(name: str, parameter: Parameter, sources: Sources) -> bool:
    """Whether an optional parameter is a tensor: by its annotation, without one by what the forward does with it."""
    if parameter.annotation is Parameter.empty:
        return sources.handles(name)
    return tensor_like(name, parameter.annotation)


def _is_none(spec: Spec) -> bool:
    return isinstance(spec, Const) and spec.value is None


def _changed(found: Found, change: _Change, deadline: Deadline) -> Found | None:
    """What was found, built and called with other values, if it runs so and keeps them."""
    inputs = {**found.inputs, **change.inputs}
    other = found.with_plan({**found.plan, **change.plan}, deadline, _TRIES, inputs)
    if other is None:
        return None
    kept = all(
        (name in other.inputs) and not _dropped(spec, other.inputs[name]) for name, spec in change.inputs.items()
    )
    return other if kept else None


def _dropped(wanted: Spec, spec: Spec) -> bool:
    return spec.key != wanted.key if isinstance(wanted, Const) else isinstance(spec, Const)


def _text(spec: Spec) -> str:
    return value_text(spec.value) if isinstance(spec, Const) else spec.key
