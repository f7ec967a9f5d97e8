"""Finding constructor arguments: the likeliest first, then what the error of the last try asks for."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.build import constructor_repair, parts
from amplint.verify.build.configs import smaller_value
from amplint.verify.build.effort import LARGEST, MOST_ELEMENTS, OutOfTime, SizeGuard, TooLarge, within
from amplint.verify.build.queue import Waiting
from amplint.verify.build.recipe import seed_everything
from amplint.verify.build.signatures import VARIADIC, Parameter, constructor
from amplint.verify.build.spec import Const, Plan, Spec, realise
from amplint.verify.build.values import candidates
from amplint.verify.loading import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.verify.build.effort import Deadline

MOST_TRIES = 120
SECONDS_A_TRY = 10.0
_FETCHES = re.compile(r"pre_?train|download|(^|_)weights$")


class Constructor:
    """The search for arguments of one class. ``reason`` says why the last try failed."""

    def __init__(self, target: type, seed: int, deadline: Deadline) -> None:
        self.target = target
        self.seed = seed
        self.deadline = deadline
        self.parameters = constructor(target)
        self.reason = ""
        self.tries = 0
        self._choices: dict[str, list[Spec]] = {}
        self._waiting = Waiting()
        self._most = MOST_ELEMENTS
        self._refused: tuple[Plan, float] | None = None
        self.push(self._first(), 0.0)

    def choices(self, name: str) -> list[Spec]:
        """What to try for a parameter; also for a name that only ``**kwargs`` takes."""
        if name not in self._choices:
            parameter = self.parameters.get(name) or Parameter(name, Parameter.KEYWORD_ONLY)
            self._choices[name] = candidates(parameter, self.target)
        return self._choices[name]

    def push(self, plan: Plan, cost: float) -> None:
        """Try ``plan`` later; the cheapest plan is tried first."""
        self._waiting.push(plan, cost)

    def attempts(self) -> Iterator[tuple[Plan, float, torch.nn.Module]]:
        """Plans that construct the class, each with its cost and the module, until none is left or time is over.

        What nothing made small enough is then allowed to be larger.
        """
        some = False
        for attempt in self._attempts():
            some = True
            yield attempt
        if self._refused is not None and not some:
            self._most = LARGEST
            self._waiting.again(*self._refused)
            yield from self._attempts()

    def _attempts(self) -> Iterator[tuple[Plan, float, torch.nn.Module]]:
        for cost, plan in self._waiting.take():
            if self.tries >= MOST_TRIES or self.deadline.left() <= 0:
                return
            self.tries += 1
            try:
                module = self.bounded(plan)
            except (TooLarge, OutOfTime) as limit:
                self.reason = "its constructor allocates more than 150 million elements, or takes too long"
                if isinstance(limit, TooLarge) and self._refused is None:
                    self._refused = (plan, cost)
                for rank, smaller in enumerate([*self.untrained(plan), *self.smaller(plan)]):
                    self.push(smaller, cost + 0.3 + 0.2 * rank)
                continue
            except Exception as error:
                self.reason = f"its constructor raised {one_line(error)}"
                for untrained in self.untrained(plan) if isinstance(error, (OSError, RuntimeError)) else ():
                    self.push(untrained, cost + 0.2)
                for extra, repaired in constructor_repair.repairs(self, plan, error):
                    self.push(repaired, cost + extra)
                continue
            if isinstance(module, torch.nn.Module):
                yield plan, cost, module
                self.vary(plan, self.required(), cost + 2)

    def bounded(self, plan: Plan) -> Any:
        """As make, but raises OutOfTime or TooLarge where that goes too far."""
        parts.prepare(plan.values())
        with within(min(SECONDS_A_TRY, self.deadline.left())), SizeGuard(self._most):
            return self.make(plan)

    def make(self, plan: Plan) -> Any:
        """The class called with the arguments of ``plan``, under the seed."""
        seed_everything(self.seed)
        positional = [
            realise(plan[name])
            for name, parameter in self.parameters.items()
            if parameter.kind is Parameter.POSITIONAL_ONLY and name in plan
        ]
        named = {
            name: realise(spec)
            for name, spec in plan.items()
            if name not in self.parameters or self.parameters[name].kind is not Parameter.POSITIONAL_ONLY
        }
        return self.target(*positional, **named)

    def required(self) -> list[str]:
        """Parameters without a default."""
        return [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is Parameter.empty and parameter.kind not in VARIADIC
        ]

    def takes_any_keyword(self) -> bool:
        """True if the constructor has ``**kwargs``."""
        return any(parameter.kind is Parameter.VAR_KEYWORD for parameter in self.parameters.values())

    def vary(self, plan: Plan, names: list[str], cost: float) -> None:
        """Push ``plan`` with other choices for each of ``names``, the later a choice the dearer."""
        for name in names:
            for index, spec in enumerate(self.choices(name)[:6]):
                self.push({**plan, name: spec}, cost + 0.5 * index)

    def _first(self) -> Plan:
        return {name: self.choices(name)[0] for name in self.required()}

    def untrained(self, plan: Plan) -> list[Plan]:
        """``plan`` without the weights that the class would fetch by default, where an option says whether it does."""
        options = [
            name
            for name, parameter in self.parameters.items()
            if name not in plan and parameter.default is True and _FETCHES.search(name.lower())
        ]
        return [{**plan, **dict.fromkeys(options, Const(False))}] if options else []

    def smaller(self, plan: Plan) -> list[Plan]:
        """``plan`` with smaller values for its large defaults, and its configurations with smaller ones."""
        found = []
        for by in (1, 4, 16):
            changed: Plan = {}
            for name, parameter in self.parameters.items():
                if parameter.kind in VARIADIC:
                    continue
                if name in plan or parameter.default is None:
                    later = [spec for spec in self.choices(name) if spec.key.endswith(f"/ {by}")]
                    if later:
                        changed[name] = later[0]
                else:
                    value = smaller_value(name, parameter.default, by)
                    if value is not parameter.default and value != parameter.default:
                        changed[name] = Const(value)
            if changed:
                found.append({**plan, **changed})
        return found


@parts.finds_arguments
def _part_maker(kind: type[torch.nn.Module], deadline: Deadline) -> Callable[[], Any]:
    search = Constructor(kind, 0, deadline)
    for plan, _, _module in search.attempts():
        return functools.partial(search.make, plan)
    return functools.partial(_refused, f"no {kind.__name__} could be made: {search.reason}")


def _refused(reason: str) -> torch.nn.Module:
    raise TypeError(reason)
