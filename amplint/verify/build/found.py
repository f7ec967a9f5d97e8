"""What a search found: the constructor's arguments and the forward's, from which recipes are made."""

from __future__ import annotations

import functools
from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.verify.build.effort import OutOfTime, TooLarge
from amplint.verify.build.forward import Forward, call_arguments
from amplint.verify.build.recipe import Parts, Recipe

if TYPE_CHECKING:
    from torch import nn

    from amplint.verify.build.construct import Constructor
    from amplint.verify.build.effort import Deadline
    from amplint.verify.build.spec import Plan


@dataclass(frozen=True)
class Found:
    """``plan`` constructs the class of ``search``; the module runs with ``inputs``, which ``forward`` found."""

    search: Constructor
    plan: Plan
    forward: Forward
    inputs: Plan

    def recipe(self, how: str) -> FoundRecipe:
        """The recipe that makes both anew."""
        return FoundRecipe(how=how, seed=self.search.seed, parts=self._parts, guessed=True, found=self)

    def constructed(self, plan: Plan) -> nn.Module | None:
        """The class built by another plan, or None where that does not go."""
        try:
            module: nn.Module = self.search.bounded(plan)
        except (Exception, OutOfTime, TooLarge):
            return None
        return module

    def with_inputs(self, inputs: Plan) -> Found | None:
        """The same module with other inputs, if it runs with them in eval and in train mode."""
        for training in (False, True):
            if self.forward.probe(inputs, training=training).error is not None:
                return None
        return Found(self.search, self.plan, self.forward, inputs)

    def with_plan(self, plan: Plan, deadline: Deadline, most_tries: int, inputs: Plan | None = None) -> Found | None:
        """Another construction with inputs that it runs with, searched for from those at hand or from ``inputs``."""
        module = self.constructed(plan)
        if module is None:
            return None
        fresh = functools.partial(self.search.bounded, plan)
        forward = Forward(module, self.search.seed, deadline, fresh=fresh)
        ran = forward.find(most_tries=most_tries, first=[self.inputs if inputs is None else inputs])
        return None if ran is None else Found(self.search, plan, forward, ran)

    def _parts(self) -> Parts:
        return self.search.make(self.plan), *call_arguments(self.inputs, self.forward.parameters, self.search.seed)


@dataclass(frozen=True)
class FoundRecipe(Recipe):
    """A recipe that a search gave."""

    found: Found = field(repr=False, compare=False, kw_only=True)
